#!/usr/bin/env node
// Starts the program in dist, with what V8 has compiled before. A start calls hundreds of functions, which V8 compiles
// when they are first called: Node's own compile cache (node:module) keeps none of those.
// An old Node.js parses this file, too, and says what it needs: Node.js 12 knows neither `?.` nor node:fs.
const { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = require('fs')
const { basename, dirname, isAbsolute, join } = require('path')
const { Script } = require('vm')

const dist = join(__dirname, '../dist')
const { env, versions } = process
const [major, minor] = versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`plants needs Node.js 20.19 or newer; this is ${versions.node}\n`)
  process.exitCode = 70
} else if (!existsSync(join(dist, 'main.js'))) {
  process.stderr.write('plants is not built\n  Build it with: npm run build\n')
  process.exitCode = 70
} else if ('bun' in versions) require('../dist/main.js').start()
else void startWith(cacheFolder())

/** @param cache the folder, if there may be one */
async function startWith(cache) {
  const modules = new Map()
  /** scripts that are not in the cache, and where they belong there */
  const missing = []
  await load('./main.js').start()
  for (const { script, file } of missing) writeTwice(file, script)

  /** `require`, for the files in dist. */
  function load(id) {
    if (!id.startsWith('./')) return require(id)
    const known = modules.get(id)
    if (known) return known.exports
    const module = { exports: {} }
    modules.set(id, module)
    try {
      const filename = join(dist, id)
      compile(filename).runInThisContext().call(module.exports, module.exports, load, module, filename, dist)
      return module.exports
    } catch (error) {
      modules.delete(id)
      throw error
    }
  }

  function compile(filename) {
    // latin1 is the fastest to decode, and the build leaves nothing but ASCII.
    const source = `(function(exports,require,module,__filename,__dirname){${readFileSync(filename, 'latin1')}\n})`
    const file = cache && !filename.endsWith('main.js') ? join(cache, nameInCache(filename)) : undefined
    const script = new Script(source, { filename, cachedData: file && readTwice(file) })
    if (file && script.cachedDataRejected !== false) missing.push({ script, file }) // undefined without data
    return script
  }
}

/**
 * V8 compares no more of the source than its length. The name of a chunk, unlike main.js, has a hash of what was built,
 * and a later change by hand has another time.
 */
function nameInCache(filename) {
  const { mtimeMs } = statSync(filename)
  return `${process.version}-${process.arch}-${basename(filename, '.js')}-${Math.trunc(mtimeMs)}`
}

/** Undefined without a folder that belongs to the user alone: what is in it is executed. */
function cacheFolder() {
  const base = env.XDG_CACHE_HOME || env.LOCALAPPDATA || (env.HOME && join(env.HOME, '.cache'))
  const folder = join(base || '', 'plants')
  if (env.NODE_DISABLE_COMPILE_CACHE || !isAbsolute(folder)) return undefined
  const user = process.getuid ? process.getuid() : undefined // not on Windows
  const isOurs = ({ uid }) => user === undefined || uid === user
  try {
    for (const path of [dirname(folder), folder]) {
      if (existsSync(path)) continue
      if (!isOurs(statSync(dirname(path)))) return undefined // the home of another user, with sudo
      mkdirSync(path, { mode: 0o700 })
    }
    const stats = lstatSync(folder)
    const isPrivate = user === undefined || (stats.mode & 0o022) === 0
    return isPrivate && isOurs(stats) && stats.isDirectory() ? folder : undefined
  } catch {
    return undefined // the cache is optional
  }
}

/** V8 does not notice damage, and crashes. Two copies that are the same are compared faster than a hash is made. */
function readTwice(file) {
  try {
    const bytes = readFileSync(file)
    const [data, copy] = [bytes.subarray(0, bytes.length / 2), bytes.subarray(bytes.length / 2)]
    return data.equals(copy) ? data : undefined
  } catch {
    return undefined
  }
}

function writeTwice(file, script) {
  const part = `${file}.${process.pid}`
  try {
    const data = script.createCachedData()
    writeFileSync(part, Buffer.concat([data, data]), { mode: 0o600 })
    renameSync(part, file)
  } catch {
    try {
      rmSync(part, { force: true })
    } catch {} // the cache is optional
  }
}
