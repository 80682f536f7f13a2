"""Drivers as Jobs of a Kubernetes cluster."""
