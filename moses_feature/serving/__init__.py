"""A service that translates: processes, HTTP, XML-RPC, a page."""
