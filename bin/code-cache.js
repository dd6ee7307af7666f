// Runs the program in dist with a cache of the code that V8 has compiled in earlier runs.
//
// V8 compiles a function when it is called for the first time, and a start calls hundreds of them.
// The compile cache of Node.js (node:module) lacks these: it has only the functions that are
// compiled while a file is loaded. This cache is written at the end of a run, when every function
// that the run has called is compiled. If anything fails, the program runs without the cache.
//
// What is read from the cache is executed, so most of this file checks that nobody else could have
// written it. docs/design/decisions.md says why there is a cache.
const fs = require('node:fs')
const { dirname } = require('node:path')
const { Script } = require('node:vm')

/** A file of the cache is removed this long after it was written: it may be of an older version. */
const maxAgeMs = 30 * 24 * 60 * 60 * 1000
/** Matches names such as `v24.1.0-x64-list-B3kd9x2a.js-1764347755123.4`. */
const cacheFilePattern = /^v\d+\.\d+\.\d+\S*-\w+-\S+\.js-[\d.]+$/

// With O_NOFOLLOW, a link is not opened. With O_NONBLOCK, a pipe that somebody has put there does
// not block. Windows has neither of the two flags.
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
const readFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK

/** Runs `dist/main.js`. If `folder` is undefined, nothing is cached. */
exports.startFrom = async (dist, folder) => {
  const cache = folder && tryOrIgnore(() => openCache(folder))
  const modules = new Map()
  const scripts = new Map()
  await load('./main.js').start()
  // `cachedDataRejected` is true for data of another V8, and undefined without data.
  const wasCached = ({ cachedDataRejected }) => cachedDataRejected === false
  // A command may have loaded files that are not cached yet. Then all of its files are cached
  // again, because it may also have called further functions of the cached ones.
  if (![...scripts.values()].every(wasCached)) tryOrIgnore(() => writeCacheFiles(cache, scripts))

  /** Loads a module as `require` does. The files in dist do not import each other in a circle. */
  function load(id) {
    if (!id.startsWith('./')) return require(id)
    if (modules.has(id)) return modules.get(id)
    const module = { exports: {} }
    const filename = `${dist}${id.slice(1)}` // `join` would take 3 ms for all files.
    const code = fs.readFileSync(filename, 'utf8')
    // Node.js wraps a CommonJS module into the same function.
    const source = `(function(exports,require,module,__filename,__dirname){${code}\n})`
    // The name of main.js has no hash of its content, by which a file of the cache is found.
    const isCached = cache && id !== './main.js'
    const cacheFile = isCached ? `${cache}/${buildCacheName(id, filename)}` : undefined
    const cachedData = cacheFile && tryOrIgnore(() => readCacheFile(cacheFile))
    const script = new Script(source, { filename, cachedData })
    if (cacheFile) scripts.set(cacheFile, script)
    script.runInThisContext().call(module.exports, module.exports, load, module, filename, dist)
    // A module that throws is not entered, so that it throws again when it is loaded again.
    modules.set(id, module.exports)
    return module.exports
  }
}

/** Returns undefined if the action fails: no failure of the cache may end the program. */
function tryOrIgnore(action) {
  try {
    return action()
  } catch {}
}

/**
 * The cache is executed, so its folder must be no link, must belong to the user, and nobody else
 * may write to it. Each file is checked as well, because somebody who can rename files in the
 * directory above could exchange the folder after this check.
 */
function openCache(folder) {
  if (!fs.existsSync(folder)) createFolder(folder)
  return isPrivate(fs.lstatSync(folder)) ? folder : undefined
}

/** Linux gives a link the mode 777. Windows has neither user ids nor modes. */
function isPrivate({ uid, mode }) {
  return process.platform === 'win32' || (uid === process.getuid?.() && (mode & 0o022) === 0)
}

/**
 * Creates the folder and the one above it, each by its own call: a recursive `mkdir` of Node.js
 * never ends below /proc.
 */
function createFolder(folder) {
  if (!fs.existsSync(dirname(folder))) fs.mkdirSync(dirname(folder), 0o700)
  fs.mkdirSync(folder, 0o700)
}

/**
 * Names a file of the cache. V8 itself compares only the length of a source, so the name identifies
 * its content: by the hash in the name of a built file, and by its time if somebody has changed it.
 */
function buildCacheName(id, filename) {
  return `${process.version}-${process.arch}-${id.slice(2)}-${fs.statSync(filename).mtimeMs}`
}

/**
 * Reads a file of the cache. V8 crashes on damaged data, so a file has its data twice, which takes
 * less time to compare than a hash. The file is opened once, checked and read, because its name
 * could get another file in between.
 */
function readCacheFile(file) {
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

/** Writes a file for each script, with its data twice, and removes the files that are too old. */
function writeCacheFiles(cache, scripts) {
  for (const [cacheFile, script] of scripts) {
    const data = script.createCachedData()
    fs.rmSync(cacheFile, { force: true })
    // With the flag `x`, a file that exists is an error, and so is a link: it is not followed.
    fs.writeFileSync(cacheFile, Buffer.concat([data, data]), { mode: 0o600, flag: 'wx' })
  }
  // Only files with names of the cache are removed, because somebody may have exchanged the folder
  // for another one of the user.
  for (const name of fs.readdirSync(cache).filter((entry) => cacheFilePattern.test(entry))) {
    const file = `${cache}/${name}`
    if (Date.now() - fs.lstatSync(file).mtimeMs > maxAgeMs) fs.rmSync(file)
  }
}
