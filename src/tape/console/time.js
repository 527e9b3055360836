// Formats times.

const UNITS = [
  ["y", 31_557_600],
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
]

export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, (now - ms) / 1000)
  if (seconds < 2) return "now"
  return `${span(seconds)} ago`
}

export function span(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["s", 1]
  return `${Math.floor(seconds / size)} ${unit}`
}

// The time since the beginning: +0.42, +1:05.3, +2:01:05.
export function offset(ms) {
  if (ms < 0) return "−"
  const [hours, minutes, seconds] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, (ms % 60_000) / 1000]
  if (hours) return `+${hours}:${two(minutes)}:${two(Math.floor(seconds))}`
  if (minutes) return `+${minutes}:${seconds.toFixed(1).padStart(4, "0")}`
  return `+${seconds.toFixed(2)}`
}

export const clock = ms => {
  const at = new Date(ms)
  return `${at.toLocaleDateString()} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`
}

const two = number => String(number).padStart(2, "0")
