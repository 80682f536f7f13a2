"""The vocabulary of the platform: frozen values, standard library only."""
