#!/usr/bin/env node
// Starts the program in dist, with what V8 has compiled for the same command before. A start calls hundreds of functions,
// which V8 compiles when they are first called: Node's own compile cache (node:module) keeps none of those.
const { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs')
const { basename, dirname, isAbsolute, join } = require('node:path')
const { Script } = require('node:vm')

const dist = join(__dirname, '../dist')
const { env, versions } = process

if (!existsSync(join(dist, 'main.js'))) {
  process.stderr.write('plants is not built\n  Build it with: npm run build\n')
  process.exitCode = 70
} else if ('bun' in versions) require('../dist/main.js').start()
else void startWith(cacheFolder())

async function startWith(cache) {
  const [, , command = ''] = process.argv
  const prefix = `${process.version}-${process.arch}-${/^[a-z]+$/.test(command) ? command : ''}-`
  /** scripts that are not in the cache, and where they belong there */
  const missing = []
  const exitCode = await load('./main.js').start()
  // A word that is no command fails, and leaves nothing behind.
  if (exitCode === 0) for (const { script, file } of missing) writeTwice(file, script.createCachedData())

  /** `require`, for the files in dist. */
  function load(id) {
    if (!id.startsWith('./')) return require(id)
    const filename = join(dist, id)
    const known = require.cache[filename]
    if (known) return known.exports
    const module = { exports: {} }
    require.cache[filename] = module
    try {
      const run = compile(filename).runInThisContext()
      run.call(module.exports, module.exports, load, module, filename, dist)
      return module.exports
    } catch (error) {
      delete require.cache[filename]
      throw error
    }
  }

  function compile(filename) {
    // latin1 is the fastest to decode, and the build leaves nothing but ASCII.
    const source = `(function(exports,require,module,__filename,__dirname){${readFileSync(filename, 'latin1')}\n})`
    // V8 compares no more of the source than its length, but the name has a hash of the content: that of main.js has not.
    const file = cache && !filename.endsWith('main.js') ? join(cache, prefix + basename(filename, '.js')) : undefined
    const script = new Script(source, { filename, cachedData: file && readTwice(file) })
    if (file && script.cachedDataRejected !== false) missing.push({ script, file })
    return script
  }
}

/** Undefined without a folder that belongs to the user alone: what is in it is executed. */
function cacheFolder() {
  const base = env.XDG_CACHE_HOME || env.LOCALAPPDATA || (env.HOME && join(env.HOME, '.cache'))
  const folder = join(base ?? '', 'plants')
  if (env.NODE_DISABLE_COMPILE_CACHE || !isAbsolute(folder)) return undefined
  try {
    for (const path of [dirname(folder), folder]) if (!existsSync(path)) mkdirSync(path, { mode: 0o700 })
    const stats = lstatSync(folder)
    const isPrivate = process.getuid === undefined || (stats.uid === process.getuid() && (stats.mode & 0o022) === 0)
    return isPrivate && stats.isDirectory() ? folder : undefined
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

function writeTwice(file, data) {
  const part = `${file}.${process.pid}`
  try {
    writeFileSync(part, Buffer.concat([data, data]), { mode: 0o600 })
    renameSync(part, file)
  } catch {
    rmSync(part, { force: true })
  }
}
