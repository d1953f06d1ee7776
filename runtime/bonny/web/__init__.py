"""What an operator serves over HTTP: `probes` for the kubelet."""
