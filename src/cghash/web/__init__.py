"""The page: a server over one workspace. The page itself uses nothing but the HTTP API.

| module             | what it holds                                                                     |
|--------------------|-----------------------------------------------------------------------------------|
| `app`              | puts the parts together: `create_app(workspace)`                                  |
| `server`           | runs it: `cghash serve`                                                           |
| `served_workspace` | the workspace as the routes see it: searches, answers, questions, jobs            |
| `queues`           | what waits for its turn: searches, which are answered together, and pictures      |
| `connections`      | how many there may be, and how long one may be silent or slow                     |
| `guard`            | hosts, tokens, origins, methods, sizes, headers: what every request passes first  |
| `schemas`          | what goes in and out, in OpenAPI                                                  |
| `thumbnails`       | small pictures of the items, kept in the workspace                                |
| `metrics`          | counts and times for Prometheus                                                   |
| `routes`           | one file a kind of address                                                        |
"""
