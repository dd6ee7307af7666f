// Loaded before the program, with --require: exchanges two folders before one of the calls of node:fs that the program
// makes, and writes down at the end of the process how many there were.
const fs = require('node:fs')

const { SWAP_AT, SWAP_WITH, SWAP_FOLDER, SWAP_CALLS } = process.env
const { renameSync, writeFileSync } = fs
let calls = 0
for (const name of Object.keys(fs).filter((key) => key.endsWith('Sync'))) {
  const call = fs[name]
  fs[name] = (...args) => {
    calls += 1
    if (calls === Number(SWAP_AT)) {
      renameSync(SWAP_FOLDER, `${SWAP_FOLDER}.own`)
      renameSync(SWAP_WITH, SWAP_FOLDER)
    }
    return call(...args)
  }
}

process.once('exit', () => writeFileSync(SWAP_CALLS, String(calls)))
