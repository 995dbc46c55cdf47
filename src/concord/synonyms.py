"""What other libraries and papers call Concord's options and kinds, for messages about mistakes."""

WARM_UP = "warm_up warmup burn_in burnin tune num_warmup n_warmup discard"

# What is meant, as an option, a kind or an example of an option (VALUE is the caller's), and the
# words for it; of another quantity, or another form of it, with a *. Of several meanings of a word
# the first that can be had counts.
SYNONYMS = {
    # options of a run
    "step_size": "lr learning_rate step eta epsilon eps h dt tau alpha target_accept*",
    "iterations": "n_iter niter iters max_iter n_steps num_steps steps n_draws draws n_samples "
    "num_samples samples epochs rounds",
    "chains": "n_chains num_chains nchains walkers n_walkers replicates",
    "batch_size": "batch minibatch mini_batch minibatch_size subsample",
    "friction": "gamma damping",
    "seed": "random_state random_seed key* prng_key* rng_key*",
    "initial": "init initvals init_params x0 theta0 start starts",
    "network": "topology graph adjacency mixing mixing_matrix",
    "progress": "progressbar progress_bar verbose tqdm",
    "chains=4, which run at once": "cores n_jobs parallel threads processes",
    "X=np.column_stack([np.ones(len(X)), X])": "intercept fit_intercept add_intercept constant",
    "noise_sd": "sigma noise sd noise_scale residual_sd",
    "prior_variance": "prior_sd* prior_scale* prior_precision*",
    "prior_scale": "prior_sd* prior_variance* prior_precision* c* penalty*",
    "to_xarray": "to_dataframe to_pandas dataframe dataset mean std",
    "to_arviz": "posterior sample_stats inference_data to_inferencedata",
    "concentration": "alpha beta",
    "cov": "covariance variance var",
    "agents": "n_agents num_agents nodes n_nodes clients n_clients num_clients workers n_workers "
    "sites n",
    # what is recorded, and what is left out
    "every": "thin thinning stride",
    "burn_in": WARM_UP,
    "warm_up": WARM_UP,
    "record={'every': VALUE}": "thin thinning stride",
    # networks
    "loss": "drop dropout packet_loss loss_rate",
    "weights": "w mixing_weights",
    "ring": "cycle circle circulant",
    "complete": "full fully_connected clique all_to_all",
    "path": "chain line linear",
    "grid": "lattice mesh",
    "erdos_renyi": "er gnp random",
    "star": "hub",
    "no_edges": "empty disconnected isolated",
    "probability": "p prob",
    # kinds
    "admm": "d_admms dadmms c_admms d_admm c_admm",
    "local_sgld": "fald vr_fald fed_avg fedavg federated_sgld",
    "fsgld": "dsgld",
    "d_mala": "mala",
    "de_sghmc": "sghmc hmc",
    "de_sgld": "sgld",
    "d_ula": "ula lmc langevin",
    "consensus_mc": "cmc",
    "linear_regression": "linear linreg ols",
    "logistic_regression": "logistic logit logreg",
    "normal": "gaussian",
    # prices and scores
    "gradients": "iterations steps evaluations grads",
    "bytes": "bits communication megabytes",
    "b2": "bias bias2",
}

# Words of other libraries for what is not here, to which no name of Concord is near in meaning.
ABSENT = ("adam", "adagrad", "rmsprop", "nuts", "poisson_regression", "probit_regression")
