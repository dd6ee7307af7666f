import { spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { basename, join } from 'node:path'
import { note, print } from './figures.mjs'

/** Where this ran: the runtime, and the disk under the folder, whose fsync is what a commit costs. */
export function printMachine(folder, how, version = process.versions.node) {
  const { platform, arch } = process
  const processors = availableParallelism()
  print(`Node ${version}, ${platform} ${arch}, ${processors} processors, without NODE_EXTRA_CA_CERTS`)
  print(how)
  const [median, slow] = fsyncTimes(join(folder, 'fsync'))
  const fileSystem = fileSystemOf(folder)
  note('machine', {
    platform,
    arch,
    processors,
    model: cpus()[0]?.model.trim(),
    memory: totalmem() / 1e9,
    fileSystem,
    fsync: median,
  })
  note('versions', { 'Node.js': version })
  note('how', { [basename(process.argv[1], '.mjs')]: how })
  print(
    `${folder} is on ${fileSystem}; fsync after 4 KiB appended: median ${median.toFixed(2)} ms, p99 ${slow.toFixed(2)} ms\n`,
  )
}

function fileSystemOf(folder) {
  const { stdout } = spawnSync('df', ['--output=fstype,source', folder], { encoding: 'utf8' })
  const [type, source] = stdout?.split('\n')[1]?.split(/\s+/) ?? ['an unknown file system', '']
  return type === 'tmpfs' ? 'tmpfs, which is no disk' : `${type} ${source}`
}

/** The median and the 99th percentile in ms. */
function fsyncTimes(path) {
  const file = openSync(path, 'a')
  const block = Buffer.alloc(4096)
  const times = Array.from({ length: 200 }, () => {
    const start = performance.now()
    writeSync(file, block)
    fsyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  const sorted = times.toSorted((a, b) => a - b)
  return [sorted[100], sorted[198]]
}
