// Runs dist with what V8 has compiled before. A start calls hundreds of functions, which V8
// compiles when they are first called: Node's own compile cache (node:module) keeps none of those.
// The cache is optional: what fails is left out.
const fs = require('node:fs')
const { dirname } = require('node:path')
const { Script } = require('node:vm')

const maxAgeMs = 30 * 24 * 60 * 60 * 1000

/** Runs `dist/main.js`. Without a folder, nothing is cached. */
exports.startFrom = async (dist, folder) => {
  const cache = folder && attempt(() => openCache(folder))
  const modules = new Map()
  const scripts = new Map()
  await load('./main.js').start()
  const isKnown = ({ cachedDataRejected }) => cachedDataRejected === false // It is undefined without data.
  // Another command also calls other functions of the files that were cached.
  if (![...scripts.values()].every(isKnown)) attempt(() => save(cache, scripts))

  /** `require`, for the files in dist, which do not import each other in a circle. */
  function load(id) {
    if (!id.startsWith('./')) return require(id)
    if (modules.has(id)) return modules.get(id)
    const module = { exports: {} }
    const filename = `${dist}${id.slice(1)}` // `join` for each would take 3 ms.
    const code = fs.readFileSync(filename, 'utf8')
    const source = `(function(exports,require,module,__filename,__dirname){${code}\n})`
    const file = cache && id !== './main.js' ? `${cache}/${keyOf(id, filename)}` : undefined
    const cachedData = file && attempt(() => read(file))
    const script = new Script(source, { filename, cachedData })
    if (file) scripts.set(file, script)
    script.runInThisContext().call(module.exports, module.exports, load, module, filename, dist)
    modules.set(id, module.exports) // What throws fails again when it is imported again.
    return module.exports
  }
}

function attempt(action) {
  try {
    return action()
  } catch {}
}

/** The cache is executed: its folder belongs to the user, and nobody else can write to it. */
function openCache(folder) {
  if (!fs.existsSync(folder)) makeFolder(folder)
  const { uid, mode } = fs.statSync(folder)
  const isPrivate = uid === process.getuid?.() && (mode & 0o022) === 0
  return isPrivate || process.platform === 'win32' ? folder : undefined
}

/** At most two folders, one by one: in /proc, a recursive mkdir of Node.js never ends. */
function makeFolder(folder) {
  if (!fs.existsSync(dirname(folder))) fs.mkdirSync(dirname(folder), 0o700)
  fs.mkdirSync(folder, 0o700)
}

/**
 * V8 compares only the length of a source. The name of a file has a hash of what was built, and the
 * time shows a change by hand.
 */
function keyOf(id, filename) {
  return `${process.version}-${process.arch}-${id.slice(2)}-${fs.statSync(filename).mtimeMs}`
}

/** V8 does not notice damage, and crashes: a file has its data twice. A hash would take longer. */
function read(file) {
  const bytes = fs.readFileSync(file)
  const data = bytes.subarray(0, bytes.length / 2)
  return data.equals(bytes.subarray(data.length)) ? data : undefined
}

function save(cache, scripts) {
  for (const [file, script] of scripts) {
    const data = script.createCachedData()
    fs.rmSync(file, { force: true })
    fs.writeFileSync(file, Buffer.concat([data, data]), { mode: 0o600, flag: 'wx' })
  }
  for (const name of fs.readdirSync(cache).filter((entry) => /^v\d/.test(entry))) {
    const file = `${cache}/${name}`
    if (Date.now() - fs.statSync(file).mtimeMs > maxAgeMs) fs.rmSync(file)
  }
}
