// The dialog that forks a run: mutation, producer and number of turns.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { fork } from "./ask.js"
import { go } from "./place.js"
import { sentence } from "./sheet.js"

const MOST_TURNS = 200
const EFFECTS = [["", "as the server does it"], ["replay", "replay what was recorded"], ["stub", "stub: nothing is done"], ["live", "live: they are done again"]]

export function ForkDialog({ runId, seq, onClose }) {
  const dialog = useRef()
  const [wanted, setWanted] = useState({ n_turns: 10, producer: "", mutation: "", reason: "", effects: "" })
  const [problem, setProblem] = useState(null)
  const [isAsking, setAsking] = useState(false)
  useEffect(() => dialog.current.showModal(), [])

  const field = name => ({ name, value: wanted[name], onInput: event => setWanted({ ...wanted, [name]: event.target.value }) })
  const submit = async event => {
    event.preventDefault()
    setAsking(true)
    setProblem(null)
    try {
      const { child_run_id: child } = await fork(facts(runId, seq, wanted), checked(wanted.mutation))
      onClose()
      go({ view: "runs", name: child, with: runId })
    } catch (problem) {
      setProblem(problem)
      setAsking(false)
    }
  }

  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="fork-title">
    <form onSubmit=${submit}>
      <h2 id="fork-title">Fork after ${seq.toLocaleString()}</h2>
      <p class="quiet">The child begins with events 1 to ${seq.toLocaleString()} of <b>${runId}</b>, which does not change.</p>
      <label>Producer <input ...${field("producer")} placeholder="none: no replay" autocomplete="off" spellcheck="false" /></label>
      <label>Turns <input type="number" min="0" max=${MOST_TURNS} required ...${field("n_turns")} /></label>
      <label>Mutation, as JSON <textarea rows="5" spellcheck="false" placeholder='{"food": 500}' ...${field("mutation")}></textarea></label>
      <label>Effects <select ...${field("effects")}>${EFFECTS.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>
      <label>Reason <input ...${field("reason")} autocomplete="off" /></label>
      ${problem && html`<${Trouble} problem=${problem} />`}
      <footer>
        <button type="button" class="plain" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="submit" class="main" disabled=${isAsking}>${isAsking ? "Forking…" : "Fork"}</button>
      </footer>
    </form>
  </dialog>`
}

function Trouble({ problem }) {
  return html`<div class="trouble" role="alert"><b>The fork failed.</b> ${sentence(problem.message)}
    ${problem.traceId && html`<small>trace ${problem.traceId}</small>`}</div>`
}

function facts(runId, seq, { n_turns, producer, reason, effects }) {
  const body = { parent_run_id: runId, at_seq: seq, n_turns: Number(n_turns) }
  if (producer.trim()) body.producer = producer.trim()
  if (reason.trim()) body.reason = reason.trim()
  if (effects) body.effects = effects
  return body
}

function checked(mutation) {
  const text = mutation.trim()
  if (!text) return ""
  try {
    JSON.parse(text)
  } catch (error) {
    throw new Error(`The mutation is not JSON: ${error.message}`)
  }
  return text
}
