// Runs dist with what V8 has compiled before. A start calls hundreds of functions, which V8
// compiles when they are first called: Node's own compile cache (node:module) keeps none of those.
// The cache is optional: what fails is left out. docs/design/decisions.md says why there is one.
const fs = require('node:fs')
const { dirname } = require('node:path')
const { Script } = require('node:vm')

const maxAgeMs = 30 * 24 * 60 * 60 * 1000
const cacheFile = /^v\d+\.\d+\.\d+\S*-\w+-\S+\.js-[\d.]+$/

// Nothing waits for the writer of a pipe. Windows has neither.
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
const readFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK

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

/**
 * The cache is executed. So its folder is no link, belongs to the user, and nobody else can write to
 * it. Each file is checked as well: whoever can rename in the directory above can exchange the
 * folder after this.
 */
function openCache(folder) {
  if (!fs.existsSync(folder)) makeFolder(folder)
  return isPrivate(fs.lstatSync(folder)) ? folder : undefined
}

/** Linux gives a link the mode 777. Windows has neither user ids nor modes. */
function isPrivate({ uid, mode }) {
  return process.platform === 'win32' || (uid === process.getuid?.() && (mode & 0o022) === 0)
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

/**
 * V8 does not notice damage, and crashes: a file has its data twice. A hash would take longer. What
 * is checked and read is the descriptor: a name can get another file in between.
 */
function read(file) {
  const fd = fs.openSync(file, readFlags)
  try {
    const stats = fs.fstatSync(fd)
    if (!stats.isFile() || !isPrivate(stats)) return undefined
    const bytes = Buffer.allocUnsafeSlow(stats.size)
    if (fs.readSync(fd, bytes) < stats.size) return undefined
    const data = bytes.subarray(0, bytes.length / 2)
    return data.equals(bytes.subarray(data.length)) ? data : undefined
  } finally {
    fs.closeSync(fd)
  }
}

function save(cache, scripts) {
  for (const [file, script] of scripts) {
    const data = script.createCachedData()
    fs.rmSync(file, { force: true })
    // Exclusively, which follows no link.
    fs.writeFileSync(file, Buffer.concat([data, data]), { mode: 0o600, flag: 'wx' })
  }
  // Only what has the form of `keyOf`: the folder may have been exchanged for another of the user.
  for (const name of fs.readdirSync(cache).filter((entry) => cacheFile.test(entry))) {
    const file = `${cache}/${name}`
    if (Date.now() - fs.lstatSync(file).mtimeMs > maxAgeMs) fs.rmSync(file)
  }
}
