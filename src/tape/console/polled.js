// What a path answers, asked again and again while somebody looks.

import { useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { ask } from "./ask.js"

const LATER_MS = 5000

// `{ value, problem, at, again }`; a value stays while asking again fails for a while.
export function usePolled(path, everyMs = 2000) {
  const [told, setTold] = useState({ path })
  const look = useRef(() => {})
  useEffect(() => {
    let [timer, isOver] = [null, false]
    look.current = async () => {
      clearTimeout(timer)
      const found = document.hidden ? {} : await answer(path)
      if (isOver) return
      setTold(before => ({ ...keep(before, path), ...found, path }))
      timer = setTimeout(look.current, found.problem ? LATER_MS : everyMs)
    }
    const seen = () => document.hidden || look.current()
    document.addEventListener("visibilitychange", seen)
    look.current()
    return () => ((isOver = true), clearTimeout(timer), document.removeEventListener("visibilitychange", seen))
  }, [path, everyMs])
  return { ...keep(told, path), again: () => look.current() }
}

async function answer(path) {
  return ask(path, { headers: { accept: "application/json" } }).then(
    value => ({ value, problem: undefined, at: Date.now() }),
    problem => (problem.isPassing ? { problem } : { problem, value: undefined }),
  )
}

const keep = (told, path) => (told.path === path ? told : { path })
