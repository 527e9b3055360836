// Limits the number of streams that all tabs of a browser keep open.
//
// A browser keeps six HTTP/1.1 connections to a server for all of its tabs. Four of them may be streams; a view without
// one polls every second, so that connections for other requests remain.

const SLOTS = 4

// A function that releases the slot, or null when all are taken. The browser releases the slots of a closed tab.
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
