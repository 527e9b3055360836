// Why an entry became a task of a reaction, or why not.

import { html } from "./vendor/preact-htm.js"
import { Life } from "./life.js"
import { address } from "./place.js"
import { Code, Facts, number, sentence } from "./sheet.js"
import { visible } from "./visible.js"

export function Explanation({ result }) {
  return html`<div class="explanation" role="status">
    <p><b>${OUTCOMES[result.outcome] ?? result.outcome}</b> ${sentence(result.reason)}</p>
    <${Facts} facts=${[
      ["entry", `${number(result.global_seq)}`],
      ["subject", html`<span class="code">${visible(result.subject)}</span> ${result.is_subject ? "fits" : "does not fit"} <${Code} text=${result.definition.subject_pattern} />`],
      ["predicate", result.definition.predicate_cel && html`<${Code} text=${result.definition.predicate_cel} /> ${result.verdict.error ? "errs" : result.verdict.matched ? "holds" : "does not hold"}`],
      ["task", result.task && html`<a href=${address({ view: "tasks", name: result.task.task_id })}>${visible(result.task.task_id)}</a>`],
    ]} />
    ${result.parts.length > 0 && html`<ul class="parts">${result.parts.map(part => html`<li><${Code} text=${part.text} />${part.error ? ": " : " is "}<span class=${part.error ? "bad" : "quiet"}>${visible(part.error ?? part.value ?? "")}</span></li>`)}</ul>`}
    ${result.life.length > 0 && html`<h2>History of the task</h2><${Life} life=${result.life} />`}
  </div>`
}

const OUTCOMES = {
  not_active: "It was not active.", other_subject: "The subject does not fit.", no_match: "The predicate does not hold.",
  predicate_error: "The predicate erred.", too_deep: "It lies too deep.", not_yet: "It has not been read yet.", task: "It became a task.",
  coalesced: "It was merged into a later one.", backfilled: "It became a task in a backfill.", forgotten: "What became of it is forgotten.",
}
