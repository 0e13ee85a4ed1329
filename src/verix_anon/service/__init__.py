"""The provider behind HTTP (extra `service`): tenants, jobs, the workers that do them."""
