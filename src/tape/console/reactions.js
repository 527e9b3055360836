// Reactions: the list, their lag, and the details of one.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { ask } from "./ask.js"
import { Confirm } from "./confirm.js"
import { Explanation } from "./explanation.js"
import { address } from "./place.js"
import { usePolled } from "./polled.js"
import { post } from "./post.js"
import { Search } from "./search.js"
import { Code, Command, Facts, number, Sheet, Table, troubleOf } from "./sheet.js"
import { clock } from "./time.js"
import { visible } from "./visible.js"

const MOST_SHOWN = 300
const MOST_TEXT = 300
const FEW = 12
const KINDS = { 1: "agent", 2: "function", 3: "publish" }

export function Reactions({ place }) {
  return place.name ? html`<${Reaction} key=${place.name} id=${place.name} place=${place} />` : html`<${All} />`
}

function All() {
  const result = usePolled("/reactions")
  const rates = useRates(result.value?.reactions, result.at)
  const [sought, setSought] = useState("")
  const all = result.value?.reactions ?? []
  const found = all.filter(one => isSought(one, sought.toLowerCase()))
  return html`<${Sheet} title="Reactions" about=${result.value && count(all.length)}>
    ${troubleOf(result)}
    ${all.length > FEW && html`<div class="bar"><input type="search" placeholder="Search reactions" aria-label="search reactions" value=${sought} onInput=${event => setSought(event.target.value)} /></div>`}
    ${result.value && (all.length ? html`<${Table} caption="list of reactions" keyOf=${one => one.reaction_id} rows=${found.slice(0, MOST_SHOWN)} columns=${[
      ["Reaction", one => html`<a href=${address({ view: "reactions", name: one.reaction_id })}>${visible(one.name || one.reaction_id)}</a>`],
      ["Reacts to", one => html`<span class="code short">${visible(one.subject_pattern)}${one.predicate_cel && html` <span class="quiet">${visible(one.predicate_cel.slice(0, MOST_TEXT))}</span>`}</span>`],
      ["By", one => KINDS[one.handler_kind]],
      ["State", one => html`<${State} reaction=${one} />`],
      ["Lag", one => number(one.lag), "number"],
      ["Entries/s", one => number(rates.get(one.reaction_id) ?? 0), "number"],
      ["Errors", one => number(one.errors), "number"],
    ]} />` : html`<${None} />`)}
    ${all.length > 0 && !found.length && html`<p class="quiet line-of">No reaction has this name.</p>`}
    ${found.length > MOST_SHOWN && html`<p class="quiet line-of">${number(found.length - MOST_SHOWN)} more; search for them.</p>`}
  <//>`
}

const isSought = (one, text) => [one.reaction_id, one.name, one.subject_pattern].some(word => word.toLowerCase().includes(text))

const count = many => `${many.toLocaleString()} registered`

function None() {
  return html`<div class="empty"><b>No reactions yet</b><p>Register a function for a subject:</p>
    <${Command}>tape reaction add greet '/tape/event/**' --where 'type == "message"'<//></div>`
}

// Entries matched per second by each reaction, between the last two polls.
function useRates(reactions, at) {
  const seen = useRef({ at: 0, cursors: new Map(), rates: new Map() })
  if (reactions && at !== seen.current.at) {
    const { at: before, cursors } = seen.current
    const cursorsNow = new Map(reactions.map(one => [one.reaction_id, one.last_global_seq]))
    const rate = id => (cursors.has(id) ? Math.round(((cursorsNow.get(id) - cursors.get(id)) * 1000) / (at - before)) : 0)
    seen.current = { at, cursors: cursorsNow, rates: new Map([...cursorsNow.keys()].map(id => [id, rate(id)])) }
  }
  return seen.current.rates
}

function State({ reaction }) {
  const [look, text] = reaction.deleted ? ["still", "removed"] : reaction.paused ? ["busy", `paused: ${visible(reaction.paused)}`] : reaction.lag > 1000 ? ["busy", "catching up"] : ["good", "matching"]
  return html`<span class="status ${look}"><i></i>${text}</span>`
}

function Reaction({ id, place }) {
  const result = usePolled(`/reactions/${encodeURIComponent(id)}`)
  const [asking, setAsking] = useState(null)
  const one = result.value
  const path = `/reactions/${encodeURIComponent(id)}`
  return html`<${Sheet} title=${one?.name || id} about=${one?.name ? id : ""} back="#/reactions" tools=${one && html`<${State} reaction=${one} />
    <button onClick=${() => setAsking(one.paused ? "resume" : "pause")}>${one.paused ? "Resume" : "Pause"}</button>`}>
    ${troubleOf(result)}
    ${one && html`<div class="columns">
      <div><h2>Details</h2><${Facts} facts=${facts(one)} />
        ${one.errors > 0 && html`<div class="trouble"><b>${number(one.errors)} ${one.errors === 1 ? "error" : "errors"}.</b> The last one: ${visible(one.last_error)}</div>`}
        <p><a href=${address({ view: "tasks", reaction: id })}>Its tasks</a> · <a href=${address({ view: "tasks", reaction: id, status: "dlq" })}>Its dead ones</a></p>
        <${Explain} id=${id} at=${place.at} /></div>
      <div><${Search} reaction=${one} /></div>
    </div>`}
    ${asking && html`<${Confirm} title=${asking === "pause" ? "Pause this reaction?" : "Resume this reaction?"} label=${asking === "pause" ? "Pause" : "Resume"} asks=${asking === "pause" ? "Why" : undefined}
      onClose=${() => (setAsking(null), result.again())} act=${reason => (asking === "pause" ? post(`${path}/pause`, reason ? { reason } : {}) : post(`${path}/resume`))}>
      <p class="quiet">${asking === "pause" ? "It matches and claims nothing more until it is resumed; nothing is lost." : "It reads on where it was paused."}</p><//>`}
  <//>`
}

const facts = one => [
  ["reacts to", html`<span class="code">${visible(one.subject_pattern)}</span>`],
  ["only if", one.predicate_cel && html`<${Code} text=${one.predicate_cel} />`],
  ["by", KINDS[one.handler_kind]],
  ["agent", visible(one.agent_app)],
  ["target", visible(one.publish_target)],
  ["read to", `position ${number(one.last_global_seq)}, ${one.lag ? `${number(one.lag)} behind` : "all there is"}`],
  ["at once", `${number(one.max_concurrency)} at most`],
  ["a second", one.rate_limit_per_s ? number(one.rate_limit_per_s) : ""],
  ["debounce", one.debounce_ms ? `${number(one.debounce_ms)} ms` : ""],
  ["retries", `${number(one.retry_max)}, dead after ${number(Math.min(one.retry_max + 1, one.dlq_after_n))} attempts`],
  ["registered", clock(one.created_at_ms)],
]

function Explain({ id, at }) {
  const [place, setPlace] = useState(/^\d+$/.test(at) ? at : "")
  const [result, setResult] = useState({})
  const explain = async place => setResult(await ask(`/reactions/${encodeURIComponent(id)}/explain/${encodeURIComponent(place)}`).then(value => ({ value }), problem => ({ problem })))
  useEffect(() => {
    if (at) explain(at)
  }, [id, at])
  const submit = event => (event.preventDefault(), explain(place))
  return html`<div><h2>Explain a match</h2>
    <form class="ask" onSubmit=${submit}>
      <label>Position in the journal <input type="number" min="1" required value=${place} onInput=${event => setPlace(event.target.value)} /></label>
      <button type="submit">Explain</button>
    </form>
    ${result.problem && html`<div class="trouble" role="alert">${visible(result.problem.message)}</div>`}
    ${result.value && html`<${Explanation} result=${result.value} />`}
  </div>`
}
