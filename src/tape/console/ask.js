// Requests to the server; a problem keeps the server's message.

export class Problem extends Error {
  constructor(status, facts) {
    super(facts.detail || facts.title || `the server answered ${status}`)
    this.status = status
    this.code = facts.code || ""
    this.traceId = facts.trace_id || ""
  }

  // Whether a later retry may help.
  get isPassing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500
  }

  static async of(response) {
    return new Problem(response.status, await response.json().catch(() => ({})))
  }

  static unreachable() {
    return new Problem(0, { detail: "the server does not answer", code: "unreachable" })
  }
}

export async function ask(path, options) {
  const response = await fetch(path, options).catch(unreachable)
  if (!response.ok) throw await Problem.of(response)
  return parsed(await response.text().catch(unreachable))
}

function unreachable(error) {
  throw error.name === "AbortError" ? error : Problem.unreachable()
}

// A proxy or a captive portal may answer 200 in the server's place.
function parsed(text) {
  try {
    return JSON.parse(text, exact)
  } catch {
    throw new Problem(0, { detail: "another server answered", code: "unreachable" })
  }
}

// A whole number that a browser would round keeps its digits, where the browser can do that.
function exact(name, value, { source } = {}) {
  const isRounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && /^-?\d+$/.test(source ?? "") ? JSON.rawJSON(source) : value
}

export const runPath = runId => `/runs/${encodeURIComponent(runId)}`

// Forks a run. The mutation is sent as typed, so that no number is rounded.
export function fork(facts, mutation) {
  const text = JSON.stringify(facts)
  const body = mutation ? `${text.slice(0, -1)},"mutation":${mutation}}` : text
  return ask("/forks", { method: "POST", headers: { "content-type": "application/json" }, body })
}
