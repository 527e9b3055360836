// A parent and its child, row by row.
//
// Up to the fork their entries are equal. Then the child has its fork entry and its mutation, where the parent has no
// row. After that the rows are side by side: the child's first own event next to the parent's next one.

export function align(parent, child, fork) {
  const parents = new Map(parent.map(entry => [entry.seq, entry]))
  const rows = []
  let shift = 0
  for (const entry of child) {
    const isPreface = isForkEntry(entry, fork)
    shift += isPreface ? 1 : 0
    rows.push(paired(isPreface ? undefined : parents.get(entry.seq - shift), entry, fork))
  }
  const met = (child.at(-1)?.seq ?? 0) - shift
  return [...rows, ...parent.filter(entry => entry.seq > met).map(left => ({ left, right: undefined, is: "missing" }))]
}

// The entries that the fork itself appends, before those of its producer.
function isForkEntry(entry, fork) {
  if (!fork) return false
  return entry.seq === fork.atSeq + 1 || (entry.seq === fork.atSeq + 2 && entry.type === "mutation")
}

function paired(left, right, fork) {
  if (!left) return { left, right, is: "added" }
  if (fork && right.seq <= fork.atSeq) return { left, right, is: "same" }
  return { left, right, is: left.equals(right) ? "equal" : "different" }
}

// The first row in which the entries differ.
export const firstDifference = rows => rows.findIndex(row => row.is === "different")

// A row's name in the address: the child's seq, or the parent's where the child has nothing.
export const keyOf = row => (row.right ? String(row.right.seq) : `p${row.left.seq}`)
