// The lake: where the entries are, its tables, and SQL queries.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { Bars, Line } from "./chart.js"
import { amend } from "./place.js"
import { usePolled } from "./polled.js"
import { post } from "./post.js"
import { Command, Figures, number, sentence, Sheet, Table, Tabs, troubleOf } from "./sheet.js"
import { ago, span } from "./time.js"
import { visible } from "./visible.js"
import { useNow } from "./watching.js"

const MOST_BARS = 12
const MOST_ROWS = 50
const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"]
const FIRST = "SELECT type, count(*) AS n FROM journal GROUP BY ALL ORDER BY n DESC LIMIT 12"

export function Lake({ place }) {
  const result = usePolled("/lake", 5000)
  const hint = html`<p>It keeps the whole history of the journal as files.</p><${Command}>tape lake sync<//><${Command}>tape lake tables<//>`
  return html`<${Sheet} title="Lake">
    ${troubleOf(result, result.problem?.message.includes("tape lake sync") && hint)}
    ${result.value && html`<${Temperatures} lake=${result.value} /><${Standing} lake=${result.value} /><${Tables} chosen=${place.table} /><${Question} />`}
  <//>`
}

// One bar from the first position to the last: what is in files, in the journal, and in memory.
function Temperatures({ lake }) {
  const head = Math.max(lake.warm.head, lake.cold.head, 1)
  const kinds = ["cold", "warm", "hot"].map(name => [name, lake[name].floor, lake[name].head])
  return html`<figure class="temperatures">
    <svg viewBox="0 0 1000 42" preserveAspectRatio="none" role="img" aria-label=${kinds.map(([name, floor, last]) => `${name}: ${between(floor, last)}`).join("; ")}>
      <rect class="ground" width="1000" height="42" />
      ${kinds.map(([name, floor, last], n) => last >= floor && html`<rect class=${name} x=${((floor - 1) / head) * 1000} y=${n * 14} width=${((last - floor + 1) / head) * 1000} height="14" />`)}
    </svg>
    <figcaption>${kinds.map(([name, floor, last]) => html`<span><i class=${name}></i>${name} <span class="quiet">${between(floor, last)}, ${MEANING[name]}</span></span>`)}</figcaption>
  </figure>`
}

const MEANING = { cold: "in files", warm: "in the journal", hot: "in memory" }

const between = (floor, last) => (last >= floor ? `${number(floor)} to ${number(last)}` : "nothing")

function Standing({ lake }) {
  const now = useNow(5000)
  return html`<${Figures} figures=${[
    ["behind by", lake.lag ? `${number(lake.lag)} entries` : "nothing", lake.lag ? "busy" : ""],
    ["for", lake.lag ? span(lake.lag_ms / 1000) : "–"],
    ["files", number(lake.files)],
    ["size", sized(lake.bytes)],
    ["last commit", lake.committed_at_ms ? ago(lake.committed_at_ms, now) : "never"],
    ["version", number(lake.version)],
  ]} />`
}

function sized(bytes) {
  const unit = Math.min(SIZES.length - 1, Math.floor(Math.log2(bytes || 1) / 10))
  return `${(bytes / 1024 ** unit).toLocaleString(undefined, { maximumFractionDigits: unit ? 1 : 0 })} ${SIZES[unit]}`
}

function Tables({ chosen }) {
  const result = usePolled("/lake/tables", 10_000)
  const tables = result.value?.tables ?? []
  const name = chosen ?? tables.find(table => table.rows > 0)?.name
  return html`<h2>Tables</h2>
    ${result.value && !tables.length && html`<div class="kind"><p class="quiet">There are no tables yet.</p><${Command}>tape lake tables<//></div>`}
    ${tables.length > 0 && html`<${Tabs} label="table" chosen=${name} onChoose=${table => amend({ table })} tabs=${tables.map(table => [table.name, `${table.name} ${number(table.rows)}`])} />`}
    ${name && html`<${OneTable} key=${name} name=${name} />`}`
}

function OneTable({ name }) {
  const result = usePolled(`/lake/tables/${encodeURIComponent(name)}`, 15_000)
  return html`${troubleOf(result)}${result.value && html`<p class="quiet line-of">As of ${number(result.value.through)} in the journal, ${number(result.value.n_rows)} rows.</p><${Answer} caption=${name} result=${result.value} />`}`
}

function Question() {
  const [sql, setSql] = useState(FIRST)
  const [result, setResult] = useState({})
  const [isAsking, setAsking] = useState(false)
  const submit = async event => {
    event.preventDefault()
    setAsking(true)
    setResult(await post("/lake/query", { sql, limit: 500 }).then(value => ({ value }), problem => ({ problem })))
    setAsking(false)
  }
  const typed = event => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)
  return html`<h2>Ask</h2>
    <form class="ask question" onSubmit=${submit}>
      <label>One SELECT, over the view journal and the tables <textarea rows="3" spellcheck="false" value=${sql} onInput=${event => setSql(event.target.value)} onKeyDown=${typed}></textarea></label>
      <button type="submit" class="main" disabled=${isAsking}>${isAsking ? "Loading…" : "Ask"}</button>
    </form>
    ${result.problem && html`<div class="trouble" role="alert"><b>The query failed.</b> ${sentence(result.problem.message)}</div>`}
    ${result.value && html`<div role="status" class="answered"><p class="quiet line-of">${number(result.value.rows.length)} rows${result.value.is_whole ? "" : ", and there are more"}</p><${Answer} caption="answer" result=${result.value} /></div>`}`
}

function Answer({ caption, result: { columns, rows } }) {
  const isNumber = n => rows.some(row => typeof row[n] === "number")
  return html`<${Drawn} caption=${caption} columns=${columns} rows=${rows} />
    ${rows.length > 0 && html`<${Table} caption=${`rows of ${caption}`} rows=${rows.slice(0, MOST_ROWS)} columns=${columns.map((title, n) => [visible(title), row => cell(row[n], title), isNumber(n) ? "number" : undefined])} />`}
    ${rows.length > MOST_ROWS && html`<p class="quiet line-of">${number(rows.length - MOST_ROWS)} more rows</p>`}`
}

function cell(value, title) {
  if (value === null) return html`<span class="quiet">–</span>`
  if (typeof value === "number" && /_ms$/.test(title) && value > 1e12) return visible(new Date(value).toISOString().slice(0, 19).replace("T", " "))
  if (typeof value === "number") return number(value)
  return html`<span class="short">${visible(typeof value === "string" ? value : JSON.stringify(value))}</span>`
}

// Sums by the first text column, or over time when there is a minute column.
function Drawn({ caption, columns, rows }) {
  const value = VALUES.map(name => columns.indexOf(name)).find(n => n >= 0) ?? columns.findLastIndex((_, n) => rows.some(row => typeof row[n] === "number"))
  const minute = columns.indexOf("minute_ms")
  if (!rows.length || value < 0) return null
  if (minute >= 0) return html`<${Line} label=${`${columns[value]} a minute`} points=${overTime(sums(rows, minute, value))} />`
  const name = NAMES.map(name => columns.indexOf(name)).find(n => n >= 0) ?? columns.findIndex((_, n) => n !== value && rows.some(row => typeof row[n] === "string"))
  if (name < 0) return null
  const items = [...sums(rows, name, value)].sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
  return html`<${Bars} label=${`${caption}: ${columns[value]} by ${columns[name]}`} items=${items.slice(0, MOST_BARS)} />`
}

const VALUES = ["difference", "cost_usd", "n_events", "n_calls", "n_ok", "p50_ms", "latency_ms", "usd_spent", "value", "n"]
const NAMES = ["tool", "model", "agent", "type", "subject", "reason"]

function sums(rows, name, value) {
  const found = new Map()
  for (const row of rows) if (typeof row[value] === "number") found.set(row[name] ?? "–", (found.get(row[name] ?? "–") ?? 0) + row[value])
  return found
}

function overTime(found) {
  const minutes = [...found.keys()].sort((a, b) => a - b)
  const [first, last] = [minutes[0], minutes.at(-1)]
  const steps = Math.min(600, Math.round((last - first) / 60_000) + 1)
  const points = Array(Math.max(2, steps)).fill(0)
  for (const [minute, value] of found) points[last === first ? points.length - 1 : Math.round(((minute - first) / (last - first)) * (points.length - 1))] += value
  return points
}
