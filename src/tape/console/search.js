// Dry run and backfill of a reaction over the whole history.

import { html, useState } from "./vendor/preact-htm.js"
import { ask } from "./ask.js"
import { Days } from "./chart.js"
import { Confirm } from "./confirm.js"
import { address } from "./place.js"
import { usePolled } from "./polled.js"
import { post } from "./post.js"
import { Command, number, sentence, Table } from "./sheet.js"
import { clock, span } from "./time.js"
import { visible } from "./visible.js"

const NAMES = { dry_run: "Dry run", backfill: "Backfill" }

export function Search({ reaction }) {
  const path = `/reactions/${encodeURIComponent(reaction.reaction_id)}`
  const result = usePolled(`${path}/searches`, 1000)
  const [problem, setProblem] = useState(null)
  const [isAsking, setAsking] = useState(false)
  const [isMaking, setMaking] = useState(false)
  const [after, setAfter] = useState("")
  const { dry_run: dry, backfill } = result.value ?? {}
  const running = [dry, backfill].find(search => search?.state === "running")
  const isCounted = dry?.state === "done"
  const act = asked => {
    setAsking(true)
    return asked.then(() => setProblem(null), setProblem).then(result.again).then(() => setAsking(false))
  }
  const count = event => (event.preventDefault(), act(post(`${path}/dry-run`, { after: Number(after) })))
  return html`<section class="search" aria-label="over all of history"><h2>Dry run and backfill</h2>
    <p class="quiet">A dry run counts with Spark what the reaction matches in the lake and the journal. A backfill creates the missing tasks.</p>
    ${result.value && html`<form class="ask" onSubmit=${count}>
      <label>After position <input type="number" min="0" placeholder="0, the beginning" value=${after} onInput=${event => setAfter(event.target.value)} /></label>
      <button type="submit" disabled=${running || isAsking}>Dry run</button>
      <button type="button" disabled=${running || isAsking || !isCounted || !dry.matches} title=${isCounted ? "" : "After a dry run"} onClick=${() => setMaking(true)}>Backfill…</button>
      ${running && html`<button type="button" disabled=${isAsking} onClick=${() => act(ask(`${path}/searches`, { method: "DELETE" }))}>Cancel</button>`}
    </form>`}
    ${(problem ?? (result.value ? null : result.problem)) && html`<div class="trouble" role="alert"><b>The search failed.</b> ${sentence((problem ?? result.problem).message)}</div>`}
    ${running && html`<${Progress} search=${running} />`}
    <div role="status">${backfill && !running && html`<${Ending} search=${backfill} />`}${dry && dry !== running && html`<${Ending} search=${dry} />`}</div>
    ${isCounted && html`<${Found} search=${dry} />`}
    <details><summary>The same as commands</summary>
      <${Command}>${`tape reaction backfill ${reaction.reaction_id} --dry-run`}<//><${Command}>${`tape reaction backfill ${reaction.reaction_id}`}<//>
      <p class="quiet">And what today's definition would match, drawn:</p><${Command}>${dryRun(reaction)}<//></details>
    ${isMaking && html`<${Confirm} title=${`Make ${tasks(dry.matches)}?`} label="Backfill" onClose=${() => (setMaking(false), result.again())} act=${() => post(`${path}/backfill`, { after: dry.after, through: dry.through }).then(() => setProblem(null))}>
      <p class="quiet">${`The dry run found ${matches(dry.matches)} ${between(dry)}. A task that is there already is not made again, so it may be fewer; workers begin with them at once. Done tasks are forgotten after 30 days, and older ones would be made again: begin after them, if they must not be.`}</p><//>`}
  </section>`
}

function Progress({ search }) {
  const progressText = search.through && search.searched === 0 && search.matches === 0 ? "Spark is starting" : `${number(search.searched)} of ${number(search.through - search.after)} entries`
  return html`<div class="progress"><label>${NAMES[search.kind]}: ${progressText}${search.matches > 0 && `, ${matches(search.matches)}`}${search.kind === "backfill" && search.made > 0 && `, ${tasks(search.made)} made`}
    <progress max=${search.through - search.after || 1} value=${search.searched || undefined}></progress></label></div>`
}

function Ending({ search }) {
  const name = NAMES[search.kind]
  if (search.state === "failed") return html`<div class="trouble"><b>${name} failed.</b> ${sentence(search.reason)}</div>`
  const took = span((search.ended_at_ms - search.started_at_ms) / 1000)
  const found = search.kind === "backfill" ? `${tasks(search.made)} made of ${matches(search.matches)}` : matches(search.matches)
  return html`<p><b>${name}${search.state === "cancelled" ? ", cancelled" : ""}:</b> ${found} in ${plural(search.searched, "entry", "entries")}${search.after > 0 && ` after ${number(search.after)}`}${search.older > 0 && `, and ${number(search.older)} merged into newer ones`} <span class="quiet">${took}, ${clock(search.ended_at_ms).slice(0, -4)}</span></p>`
}

function Found({ search }) {
  return html`${search.days.length > 0 && html`<${Days} label="Matches" days=${search.days} />`}
    ${search.samples.length > 0 && html`<${Table} caption="the newest matches" rows=${search.samples} keyOf=${entry => entry.global_seq} columns=${[
      ["Newest", entry => html`<a href=${address({ view: "runs", name: entry.run_id, at: entry.seq })}>${number(entry.global_seq)}</a>`],
      ["Subject", entry => html`<span class="code">${visible(entry.subject)}</span>`],
      ["When", entry => clock(entry.ts_ms).slice(0, -4)],
    ]} />`}
    ${search.errors.map(error => html`<div class="trouble" key=${error.error}><b>${`The predicate erred ${number(error.entries)} times`}</b>${`, from ${number(error.first_global_seq)} to ${number(error.last_global_seq)}: `}${visible(error.error)}</div>`)}`
}

const between = ({ after, through }) => (after ? `from position ${number(after + 1)} to ${number(through)}` : `up to position ${number(through)}`)

const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`
const matches = count => plural(count, "match", "matches")
const tasks = count => plural(count, "task", "tasks")

const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`

const dryRun = one => `tape reaction dry-run --subject ${quoted(one.subject_pattern)}${one.predicate_cel ? ` --where ${quoted(one.predicate_cel)}` : ""} --plot what-if.svg`
