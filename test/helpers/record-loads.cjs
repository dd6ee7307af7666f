// Loaded before the program, with --require: writes down at the end of the process what it has loaded. A module of Node's
// own that this file needs is loaded by every start.
const { writeFileSync } = require('node:fs')

process.once('exit', () => {
  const modules = process.moduleLoadList
    .filter((entry) => /^NativeModule (?!internal)/.test(entry))
    .map((entry) => entry.split(' ')[1])
  const { sharedObjects } = process.report.getReport()
  const natives = sharedObjects.filter((file) => file.endsWith('.node'))
  writeFileSync(process.env.LOADS_FILE, JSON.stringify({ files: [...Object.keys(require.cache), ...natives], modules }))
})
