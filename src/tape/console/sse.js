// The text of an event stream, however it is cut, as frames.

export class Frames {
  #rest = ""

  // The frames that this piece completes: what they are called, their id if they have one, and their text.
  feed(piece) {
    const blocks = (this.#rest + piece).split("\n\n")
    this.#rest = blocks.pop()
    return blocks.map(read).filter(frame => frame.id !== null || frame.text !== "")
  }
}

function read(block) {
  const frame = { id: null, name: "", text: "" }
  for (const line of block.split("\n")) {
    if (line.startsWith("data: ")) frame.text += line.slice(6)
    else if (line.startsWith("id: ")) frame.id = Number(line.slice(4))
    else if (line.startsWith("event: ")) frame.name = line.slice(7)
  }
  return frame
}
