// A confirmation dialog that runs an action and shows its error.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { sentence } from "./sheet.js"

// `act(reason)` does it; with `asks` a line may be typed.
export function Confirm({ title, children, label, asks, act, onClose }) {
  const dialog = useRef()
  const [text, setText] = useState("")
  const [problem, setProblem] = useState(null)
  const [isActing, setActing] = useState(false)
  useEffect(() => dialog.current.showModal(), [])
  const submit = async event => {
    event.preventDefault()
    setActing(true)
    // Closed before it is removed, so that the browser restores the focus.
    await act(text.trim()).then(() => dialog.current?.close(), problem => (setProblem(problem), setActing(false)))
  }
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="confirm-title">
    <form onSubmit=${submit}>
      <h2 id="confirm-title">${title}</h2>
      ${children}
      ${asks && html`<label>${asks} <input value=${text} onInput=${event => setText(event.target.value)} autocomplete="off" /></label>`}
      ${problem && html`<div class="trouble" role="alert"><b>It failed.</b> ${sentence(problem.message)}${problem.traceId && html`<small>trace ${problem.traceId}</small>`}</div>`}
      <footer>
        <button type="button" class="plain" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="submit" class="main" disabled=${isActing}>${label}</button>
      </footer>
    </form>
  </dialog>`
}
