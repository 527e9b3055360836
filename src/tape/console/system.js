// The server: readiness, throughput, latency and subscribers.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { Problem } from "./ask.js"
import { Bars, Line, rounded } from "./chart.js"
import { usePolled } from "./polled.js"
import { Facts, Figures, number, Sheet, troubleOf } from "./sheet.js"
import { visible } from "./visible.js"

const POLL_MS = 2000
const MAX_SAMPLES = 90

export function System() {
  const ready = usePolled("/ready", 5000)
  const about = usePolled("/capabilities", 60_000)
  const samples = useSamples()
  const now = samples.at(-1)?.meters
  return html`<${Sheet} title="System" tools=${html`<${Health} ready=${ready} />`}>
    ${!now && troubleOf({ problem: samples.problem })}
    ${now && html`<${Figures} figures=${figures(now, samples)} />
      <div class="columns charts">
        <${Line} label="Events appended a second" least=${MAX_SAMPLES / 3} points=${rates(samples, "tape_events_published_total")} />
        <${Line} label="Entries streamed a second" least=${MAX_SAMPLES / 3} points=${rates(samples, "tape_events_streamed_total")} />
      </div>
      <div class="columns">
        <div><h2>Requests by route</h2><${Bars} label="requests by route" items=${byLabel(now, "tape_requests_total", "route").filter(([route]) => !route.startsWith("/assets")).slice(0, 12)} /></div>
        <div><h2>Errors</h2><${Facts} facts=${troubles(now)} /><h2>About</h2><${Facts} facts=${facts(about.value, now)} /></div>
      </div>`}
  <//>`
}

function Health({ ready }) {
  const [look, text] = ready.problem ? ["bad", visible(ready.problem.message)] : ready.value ? ["good", "ready"] : ["still", "loading"]
  return html`<span class="status ${look}" role="status"><i></i>${text}</span>`
}

// The metrics of the server, one sample per poll.
function useSamples() {
  const [samples, setSamples] = useState([])
  useEffect(() => {
    let [timer, isOver] = [null, false]
    const poll = async () => {
      const found = document.hidden ? null : await sample().catch(problem => ({ problem }))
      if (isOver) return
      if (found?.meters) setSamples(before => [...before.slice(1 - MAX_SAMPLES), found])
      else if (found) setSamples(before => Object.assign([...before], found))
      timer = setTimeout(poll, POLL_MS)
    }
    poll()
    return () => ((isOver = true), clearTimeout(timer))
  }, [])
  return samples
}

async function sample() {
  const response = await fetch("/metrics", { headers: { accept: "text/plain" } }).catch(() => {
    throw Problem.unreachable()
  })
  if (!response.ok) throw await Problem.of(response)
  return { at: Date.now(), meters: parsed(await response.text()) }
}

// The text format of Prometheus as a list of { name, labels, value }.
export function parsed(text) {
  return text.split("\n").filter(line => line && !line.startsWith("#")).map(line => {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    return { name, labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value])), value: Number(value) }
  })
}

const total = (meters, name) => meters.filter(meter => meter.name === name).reduce((sum, meter) => sum + meter.value, 0)

function rates(samples, name) {
  const points = []
  for (let n = 1; n < samples.length; n += 1) {
    const [before, after] = [samples[n - 1], samples[n]]
    points.push(Math.max(0, ((total(after.meters, name) - total(before.meters, name)) * 1000) / (after.at - before.at)))
  }
  return points
}

// The upper bound of the histogram bucket that holds a quantile.
function quantile(meters, q) {
  const buckets = meters.filter(meter => meter.name === "tape_append_seconds_bucket")
  const count = buckets.at(-1)?.value ?? 0
  const found = buckets.find(bucket => bucket.value >= q * count)
  if (!count) return "–"
  return found.labels.le === "+Inf" ? "over 5 s" : `≤ ${number(rounded(Number(found.labels.le) * 1000))} ms`
}

function figures(now, samples) {
  return [
    ["last position", number(total(now, "tape_journal_head"))],
    ["events/s", number(rounded(rates(samples, "tape_events_published_total").at(-1) ?? 0))],
    ["append p50", quantile(now, 0.5)],
    ["append p99", quantile(now, 0.99)],
    ["runs open", number(total(now, "tape_runs_open"))],
    ["subscribers", number(total(now, "tape_subscribers"))],
    ["largest lag", number(total(now, "tape_stream_lag_entries"))],
    ["readers evicted", number(total(now, "tape_evictions_total")), total(now, "tape_evictions_total") ? "bad" : ""],
  ]
}

function byLabel(meters, name, label) {
  const found = new Map()
  for (const meter of meters.filter(meter => meter.name === name)) found.set(meter.labels[label], (found.get(meter.labels[label]) ?? 0) + meter.value)
  return [...found].sort(([, a], [, b]) => b - a)
}

const troubles = now => [
  ["warnings to slow clients", number(total(now, "tape_slow_client_warnings_total"))],
  ["streams dropped", number(total(now, "tape_streams_dropped_total"))],
  ["resyncs", number(total(now, "tape_resyncs_total"))],
  ["appends refused", number(total(now, "tape_appends_refused_total"))],
  ["responses of 500 and above", number(byLabel(now, "tape_requests_total", "status").filter(([status]) => status >= "500").reduce((sum, [, count]) => sum + count, 0))],
]

const facts = (about, now) => [
  ["version", about && visible(about.version)],
  ["journal's epoch", about && new Date(about.epoch).toISOString().slice(0, 19).replace("T", " ")],
  ["first position", number(total(now, "tape_journal_floor"))],
  ["store", total(now, "tape_store_up") ? "answers" : "does not answer"],
  ["outbox", total(now, "tape_outbox_up") ? "answers" : "none"],
]
