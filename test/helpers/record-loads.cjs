// Loaded before the program, with --require: writes down at the end of the process what it has loaded. A module of Node's
// own that this file needs is loaded by every start.
const fs = require('node:fs')

const files = []
const { readFileSync } = fs
fs.readFileSync = (file, ...rest) => {
  files.push(String(file))
  return readFileSync(file, ...rest)
}

process.once('exit', () => {
  const modules = process.moduleLoadList
    .filter((entry) => /^NativeModule (?!internal)/.test(entry))
    .map((entry) => entry.split(' ')[1])
  const natives = process.report.getReport().sharedObjects.filter((file) => file.endsWith('.node'))
  const loaded = [...files, ...natives].filter((file) => /\.(js|node)$/.test(file))
  fs.writeFileSync(process.env.LOADS_FILE, JSON.stringify({ files: loaded, modules }))
})
