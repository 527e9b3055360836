// Text with invisible and bidirectional control characters escaped.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

export const visible = text => text.replace(HIDDEN, spelled)

function spelled(mark) {
  if (mark === "\n") return " \\n "
  return `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`
}
