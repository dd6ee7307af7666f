// Runs dist with what V8 has compiled before. A start calls hundreds of functions, which V8 compiles when they are first
// called: Node's own compile cache (node:module) keeps none of those. The cache is optional: what fails is left out.
const fs = require('node:fs')
const { dirname } = require('node:path')
const { Script } = require('node:vm')

const { O_DIRECTORY = 0, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants // Windows has none of these, nor users.
const user = process.getuid?.() ?? 0
/** What is in the cache is executed: it belongs to the user, and nobody else can write to it. */
const isPrivate = ({ uid, mode }) =>
  process.platform === 'win32' || (uid === user && (mode & 0o022) === 0)

exports.startFrom = async (dist, folder) => {
  const [cache, modules, missing] = [attempt(() => openCache(folder)), new Map(), new Map()]
  await load('./main.js').start()
  if (missing.size > 0) attempt(() => save(cache, missing))

  /** `require`, for the files in dist, which do not import each other in a circle. */
  function load(id) {
    if (!id.startsWith('./')) return require(id)
    if (modules.has(id)) return modules.get(id)
    const [module, filename] = [{ exports: {} }, `${dist}${id.slice(1)}`] // `join` for each would take 3 ms
    const source = `(function(exports,require,module,__filename,__dirname){${fs.readFileSync(filename, 'utf8')}\n})`
    // V8 compares the length of a source alone. A name has a hash of what was built, and a change by hand another time.
    const key = `${process.version}-${process.arch}-${id.slice(2)}-${fs.statSync(filename).mtimeMs}`
    const file = cache && id !== './main.js' ? `${cache}/${key}` : undefined
    const script = new Script(source, { filename, cachedData: file && attempt(() => read(file)) })
    if (file && script.cachedDataRejected !== false) missing.set(file, script) // undefined without data
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

function openCache(folder) {
  const parent = [folder, dirname(folder), dirname(dirname(folder))].find((path) =>
    fs.existsSync(path),
  )
  if (fs.statSync(parent).uid !== user) return undefined // with sudo, the home of another user
  if (parent !== folder)
    for (const path of [dirname(folder), folder]) attempt(() => fs.mkdirSync(path, 0o700))
  const fd = fs.openSync(folder, O_DIRECTORY | O_NOFOLLOW) // Another folder may take the name of this one.
  if (isPrivate(fs.fstatSync(fd)))
    return process.platform === 'linux' ? `/proc/self/fd/${fd}` : folder
}

/** V8 does not notice damage, and crashes. Two copies that are the same are compared faster than a hash is made. */
function read(file) {
  const fd = fs.openSync(file, O_NOFOLLOW | O_NONBLOCK)
  const bytes = isPrivate(fs.fstatSync(fd)) ? fs.readFileSync(fd) : Buffer.alloc(1)
  fs.closeSync(fd)
  const data = bytes.subarray(0, bytes.length / 2)
  return data.equals(bytes.subarray(data.length)) ? data : undefined
}

function save(cache, missing) {
  for (const [file, script] of missing) {
    const data = script.createCachedData()
    fs.rmSync(file, { force: true })
    fs.writeFileSync(file, Buffer.concat([data, data]), { mode: 0o600, flag: 'wx' })
  }
  for (const file of fs
    .readdirSync(cache)
    .flatMap((name) => (/^v\d/.test(name) ? `${cache}/${name}` : [])))
    if (Date.now() - fs.statSync(file).mtimeMs > 30 * 86_400_000) fs.rmSync(file)
}
