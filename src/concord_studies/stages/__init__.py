"""The stages of the workflow after metrics, each of which writes its results whole."""
