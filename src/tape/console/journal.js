// The live events of all runs; the server filters them.

import { html, useEffect, useState } from "./vendor/preact-htm.js"
import { Events } from "./events.js"
import { Feed } from "./feed.js"
import { Icon } from "./icons.js"
import { amend } from "./place.js"
import { sentence } from "./sheet.js"
import { Status } from "./status.js"
import { useOpened, useWatched } from "./watching.js"

export function Journal({ place }) {
  const { subject = "", where = "" } = place
  const feed = useOpened(() => openFeed(subject, where, place.from), [subject, where])
  useWatched(feed)
  useEffect(() => {
    if (!place.from && feed.entries.length) amend({ from: feed.entries[0].id - 1 })
  }, [place.from, feed.entries.length > 0])
  const refused = feed.status.problem
  return html`<${Events} feed=${feed} place=${place} isAcross=${true}
      empty=${refused ? html`<b>The server refused this.</b><p>${sentence(refused.message)}</p>` : feed.status.is === "away" ? "New events appear here when the server is back." : "Waiting for new events of any run."}>
    <header class="about">
      <a class="back" href="#/" aria-label="all runs"><${Icon} name="back" /></a>
      <h1>All runs</h1>
      <span class="space"></span>
      <${Status} feed=${feed} />
      <${Choice} subject=${subject} where=${where} />
    </header>
  <//>`
}

function Choice({ subject, where }) {
  const [wanted, setWanted] = useState({ subject, where })
  const field = name => ({ value: wanted[name], onInput: event => setWanted({ ...wanted, [name]: event.target.value }) })
  const submit = event => {
    event.preventDefault()
    amend({ ...wanted, at: undefined })
  }
  return html`<form class="choice" onSubmit=${submit}>
    <label>Subject <input ...${field("subject")} placeholder="/arena/*/action" spellcheck="false" autocomplete="off" /></label>
    <label>Where <input ...${field("where")} placeholder='type == "metric"' spellcheck="false" autocomplete="off" /></label>
    <button type="submit">Apply</button>
  </form>`
}

function openFeed(subject, where, from) {
  const query = { ...(subject && { subject }), ...(where && { where }) }
  const feed = new Feed(query, from ? Number(from) : null)
  return feed
}
