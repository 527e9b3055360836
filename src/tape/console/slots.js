// How many streams all tabs of a browser may keep open together.
//
// A browser keeps six connections to a server over HTTP/1.1, for all of its tabs. Four of them may be streams; whoever
// gets none of the four looks again every second, so that there is always room for a click.

const SLOTS = 4

// A function that gives the slot back, or null when all are taken. A tab that dies gives its slots back by itself.
export async function takeSlot() {
  for (let number = 0; navigator.locks && number < SLOTS; number += 1) {
    const giveBack = await tryLock(`tape-stream-${number}`)
    if (giveBack) return giveBack
  }
  return null
}

function tryLock(name) {
  return new Promise(resolve => {
    navigator.locks.request(name, { ifAvailable: true }, lock => {
      if (lock) return new Promise(giveBack => resolve(giveBack))
      resolve(null)
    })
  })
}
