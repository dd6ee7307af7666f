// Makes Node on Linux behave as on Windows, as far as the program meets it: node --require FILE. There are no user ids
// and no pipes; an open file can be neither replaced nor removed, nor its folder renamed.
const fs = require('node:fs')
const { join } = require('node:path')

Object.defineProperty(process, 'platform', { value: 'win32' })
delete process.getuid
for (const name of ['isFIFO', 'isSocket', 'isBlockDevice']) fs.Stats.prototype[name] = () => false

const { dlopen } = process
process.dlopen = (module, file, ...flags) =>
  dlopen(module, file.replace('win32-', 'linux-'), ...flags)

function isOpen(path) {
  return fs.readdirSync('/proc/self/fd').some((fd) => {
    const link = join('/proc/self/fd', fd)
    const open = fs.existsSync(link) ? fs.readlinkSync(link) : ''
    return open === path || open.startsWith(`${path}/`)
  })
}

function failing(name, code, fails) {
  const original = fs[name]
  fs[name] = (...args) => {
    if (fails(...args)) throw Object.assign(new Error(`${code}: ${name}`), { code, syscall: name })
    return original(...args)
  }
}

let scans = 3 // how often a scanner has the file open that is to be replaced
failing(
  'renameSync',
  'EPERM',
  (from, to) => isOpen(from) || isOpen(to) || (fs.existsSync(to) && scans-- > 0),
)
failing('rmSync', 'EBUSY', isOpen)
const { fstatSync } = fs
fs.fstatSync = (...args) => {
  const stats = fstatSync(...args)
  const isSocket = (Number(stats.mode) & fs.constants.S_IFMT) === fs.constants.S_IFSOCK // of execa
  return isSocket ? Object.assign(stats, { mode: fs.constants.S_IFIFO }) : stats
}
