// Why an entry became a task of a reaction, or why not.

import { html } from "./vendor/preact-htm.js"
import { Life } from "./life.js"
import { address } from "./place.js"
import { Code, Facts, number, sentence } from "./sheet.js"
import { visible } from "./visible.js"

export function Explanation({ told }) {
  return html`<div class="explanation" role="status">
    <p><b>${OUTCOMES[told.outcome] ?? told.outcome}</b> ${sentence(told.reason)}</p>
    <${Facts} facts=${[
      ["entry", `${number(told.global_seq)}`],
      ["subject", html`<span class="code">${visible(told.subject)}</span> ${told.pattern.matched ? "fits" : "does not fit"} <${Code} text=${told.pattern.text} />`],
      ["predicate", told.predicate.text && html`<${Code} text=${told.predicate.text} /> ${told.predicate.error ? "errs" : told.predicate.matched ? "holds" : "does not hold"}`],
      ["task", told.task && html`<a href=${address({ view: "tasks", name: told.task.task_id })}>${visible(told.task.task_id)}</a>`],
    ]} />
    ${told.predicate.parts.length > 0 && html`<ul class="parts">${told.predicate.parts.map(part => html`<li><${Code} text=${part.text} />${part.error ? ": " : " is "}<span class=${part.error ? "bad" : "quiet"}>${visible(part.error ?? part.value ?? "")}</span></li>`)}</ul>`}
    ${told.life.length > 0 && html`<h2>What became of the task</h2><${Life} life=${told.life} />`}
  </div>`
}

const OUTCOMES = {
  not_active: "It was not active.", other_subject: "The subject does not fit.", no_match: "The predicate does not hold.",
  predicate_error: "The predicate erred.", too_deep: "It lies too deep.", not_yet: "It has not been read yet.", task: "It became a task.",
  coalesced: "It was merged into a later one.", backfilled: "It became a task in a backfill.", forgotten: "What became of it is forgotten.",
}
