// The response of a path, polled while the page is visible.

import { useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { ask } from "./ask.js"

const LATER_MS = 5000

// `{ value, problem, at, again }`; the last value stays while polling fails.
export function usePolled(path, everyMs = 2000) {
  const [result, setResult] = useState({ path })
  const poll = useRef(() => {})
  useEffect(() => {
    let [timer, isOver] = [null, false]
    poll.current = async () => {
      clearTimeout(timer)
      const found = document.hidden ? {} : await answer(path)
      if (isOver) return
      setResult(before => ({ ...keep(before, path), ...found, path }))
      timer = setTimeout(poll.current, found.problem ? LATER_MS : everyMs)
    }
    const seen = () => document.hidden || poll.current()
    document.addEventListener("visibilitychange", seen)
    poll.current()
    return () => ((isOver = true), clearTimeout(timer), document.removeEventListener("visibilitychange", seen))
  }, [path, everyMs])
  return { ...keep(result, path), again: () => poll.current() }
}

async function answer(path) {
  return ask(path, { headers: { accept: "application/json" } }).then(
    value => ({ value, problem: undefined, at: Date.now() }),
    problem => (problem.isPassing ? { problem } : { problem, value: undefined }),
  )
}

const keep = (result, path) => (result.path === path ? result : { path })
