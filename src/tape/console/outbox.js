// The outbox: its rows, the failed ones, and their replay.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { Confirm } from "./confirm.js"
import { Json } from "./json.js"
import { address, amend } from "./place.js"
import { usePolled } from "./polled.js"
import { post } from "./post.js"
import { Command, Facts, Figures, number, Sheet, Table, Tabs, troubleOf } from "./sheet.js"
import { span } from "./time.js"
import { visible } from "./visible.js"

const MAX_SHOWN = 200
const LOOKS = { pending: "busy", in_flight: "good", delivered: "still", failed: "bad" }
const TABS = [["", "All"], ["pending", "Pending"], ["in_flight", "In flight"], ["delivered", "Delivered"], ["failed", "Failed"]]

export function Outbox({ place }) {
  return place.name ? html`<${OutboxRecord} key=${place.name} id=${place.name} />` : html`<${All} place=${place} />`
}

function All({ place }) {
  const { status = "" } = place
  const result = usePolled(`/outbox?${new URLSearchParams({ limit: MAX_SHOWN, ...(status && { status }) })}`)
  const stats = usePolled("/outbox/stats", 5000)
  const [chosen, setChosen] = useState(new Set())
  const [replaying, setReplaying] = useState(null)
  useEffect(() => setChosen(new Set()), [status])
  const rows = result.value?.rows ?? []
  const failed = rows.filter(row => row.status === "failed")
  const picked = failed.filter(row => chosen.has(row.event_id)).map(row => row.event_id)
  const choose = id => setChosen(before => (before.has(id) ? new Set([...before].filter(other => other !== id)) : new Set([...before, id])))
  return html`<${Sheet} title="Outbox">
    ${stats.value && html`<${Figures} figures=${figures(stats.value)} />
      ${stats.value.advice.map(text => html`<p class="notice" key=${text}>${visible(text)}</p>`)}<${Generations} rows=${rows} />`}
    ${result.value && html`<div class="bar">
      <${Tabs} label="status" tabs=${TABS} chosen=${status} onChoose=${value => amend({ status: value })} />
      <span class="space"></span>
      ${failed.length > 0 && html`<button disabled=${!picked.length} onClick=${() => setReplaying({ event_ids: picked })}>Replay chosen</button>
        <button onClick=${() => setReplaying({})}>Replay all failed</button>`}
    </div>`}
    ${troubleOf(result, html`<p>An outbox publishes events inside your own transaction.</p>${result.problem?.message.includes("tape outbox migrate") && html`<${Command}>tape outbox migrate<//>`}`)}
    ${result.value && (rows.length ? html`<${Table} caption="rows of the outbox" keyOf=${row => row.event_id} rows=${rows} columns=${columns(chosen, choose, failed.length)} />` : html`<div class="empty"><b>${status ? "No such rows" : "Nothing has been published"}</b><p>An event that is published in a transaction appears here when the transaction commits.</p></div>`)}
    ${rows.length === MAX_SHOWN && html`<p class="quiet line-of">These are the newest ${number(MAX_SHOWN)}; choose a status to see others.</p>`}
    ${replaying && html`<${Confirm} title=${question(replaying)} label="Replay" onClose=${() => (setReplaying(null), setChosen(new Set()), result.again(), stats.again())}
      act=${() => post("/outbox/replay", { ...replaying, replayed_by: "console" })}>
      <p class="quiet">Handlers that have handled a row do not get it again.</p><//>`}
  <//>`
}

const figures = stats => [
  ["pending", number(stats.pending)],
  ["in flight", number(stats.in_flight)],
  ["failed", number(stats.failed), stats.failed ? "bad" : ""],
  ["oldest pending", stats.oldest_ms ? span(stats.oldest_ms / 1000) : "–"],
  ["rows", number(stats.rows)],
  ["delivery p50", `${number(Math.round(stats.ack_p50_ms))} ms`],
  ["delivery p99", `${number(Math.round(stats.ack_p99_ms))} ms`],
]

// The number of shown rows per generation.
function Generations({ rows }) {
  const counts = new Map()
  for (const row of rows) counts.set(row.generation, (counts.get(row.generation) ?? 0) + 1)
  if (!counts.size) return null
  const texts = [...counts].sort(([a], [b]) => b - a).map(([generation, count]) => `${number(count)} of generation ${generation}`)
  return html`<p class="quiet line-of">Shown: ${texts.join(", ")}</p>`
}

const columns = (chosen, choose, failed) => [
  ...(failed ? [["Choose", row => row.status === "failed" && html`<input type="checkbox" aria-label=${`choose ${row.event_id}`} checked=${chosen.has(row.event_id)} onChange=${() => choose(row.event_id)} />`]] : []),
  ["State", row => html`<${State} status=${row.status} />`],
  ["Event", row => html`<a href=${address({ view: "outbox", name: row.event_id })}>${visible(row.event_type)}</a>`],
  ["Source", row => visible(row.source)],
  ["Generation", row => number(row.generation), "number"],
  ["Attempts", row => number(row.attempts), "number"],
  ["When", row => visible(row.occurred_at.slice(0, 19).replace("T", " "))],
  ["Last error", row => row.last_error && html`<span class="short">${visible(row.last_error)}</span>`],
]

const question = ({ event_ids: ids }) => (!ids ? "Replay all failed rows?" : ids.length === 1 ? "Replay one row?" : `Replay ${ids.length.toLocaleString()} rows?`)

function State({ status }) {
  return html`<span class="status ${LOOKS[status]}"><i></i>${status.replace("_", " ")}</span>`
}

function OutboxRecord({ id }) {
  const result = usePolled(`/outbox/${encodeURIComponent(id)}`)
  const [isReplaying, setReplaying] = useState(false)
  const row = result.value?.row
  return html`<${Sheet} title=${row?.event_type ?? "Event"} about=${id} back="#/outbox" tools=${row && html`<${State} status=${row.status} />
      ${["failed", "delivered"].includes(row.status) && html`<button onClick=${() => setReplaying(true)}>Replay</button>`}`}>
    ${troubleOf(result)}
    ${row && html`<div class="columns">
      <div><h2>Details</h2><${Facts} facts=${facts(row)} />
        ${row.last_error && html`<div class="trouble"><b>The last error.</b> ${visible(row.last_error)}</div>`}
        <h2>Deliveries</h2>
        ${result.value.deliveries.length ? html`<${Table} caption="deliveries" rows=${result.value.deliveries} keyOf=${one => one.handler_name} columns=${[
          ["Handler", one => visible(one.handler_name)], ["State", one => html`<${State} status=${one.status} />`], ["Attempts", one => number(one.attempts), "number"], ["Last error", one => visible(one.last_error ?? "")],
        ]} />` : html`<p class="quiet">No handler has claimed it yet.</p>`}</div>
      <div><h2>Payload</h2><${Json} text=${JSON.stringify(row.payload)} />
        ${row.failure_history.length > 0 && html`<h2>Failure history</h2><${Json} text=${JSON.stringify(row.failure_history)} />`}</div>
    </div>`}
    ${isReplaying && html`<${Confirm} title="Replay one row?" label="Replay" onClose=${() => (setReplaying(false), result.again())} act=${() => post("/outbox/replay", { event_ids: [id], replayed_by: "console" })}>
      <p class="quiet">Handlers that have handled it do not get it again.</p><//>`}
  <//>`
}

const facts = row => [
  ["source", visible(row.source)],
  ["target", visible(row.target ?? "any")],
  ["when", visible(row.occurred_at)],
  ["generation", number(row.generation)],
  ["channel", html`<span class="code">${visible(row.channel)}</span>`],
  ["idempotency key", html`<span class="code">${visible(row.idempotency_key)}</span>`],
  ["order key", visible(row.order_key ?? "")],
  ["attempts", number(row.attempts)],
]
