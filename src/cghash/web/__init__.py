"""The page: a server over one workspace. The page itself uses nothing but the HTTP API.

| module       | what it does                                                                      |
|--------------|-----------------------------------------------------------------------------------|
| `app`        | puts the parts together: `create_app(workspace)`                                  |
| `serving`    | runs it: `cghash serve`                                                           |
| `service`    | the workspace as the routes see it: searches, answers, questions, jobs            |
| `batching`   | searches that wait at the same time are answered in one pass                      |
| `line`       | pictures are decoded one at a time; who waits holds no thread                     |
| `connections`| how many there may be, and how long one may be silent or slow                     |
| `guard`      | hosts, tokens, origins, sizes, headers: everything that a request must pass first |
| `addresses`  | which methods an address takes                                                    |
| `schemas`    | what goes in and out, in OpenAPI                                                  |
| `thumbnails` | small pictures of the items, kept in the workspace                                |
| `metrics`    | counts and times for Prometheus                                                   |
| `routes`     | one file a kind of address                                                        |
"""
