// Parses the chunks of an event stream into frames.

export class Frames {
  #rest = ""

  // The frames that this chunk completes: name, id if any, and data.
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
