"""The service over HTTP: what is asked is checked, and handed to jobs, uploads and blobs."""
