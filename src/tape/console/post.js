// POST requests to the server.

import { ask } from "./ask.js"

export const post = (path, body = {}) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
