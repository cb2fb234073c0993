// Package python tests the Python client against the server: the names of paths and fields against
// the OpenAPI document, the quick start of the README, and scenarios that run in Python against the
// real program, through a proxy that loses and damages responses.
package python
