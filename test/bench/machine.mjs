import { spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { print } from './figures.mjs'

/** Where this ran: the runtime, and the disk under the folder, whose fsync is what a commit costs. */
export function printMachine(folder, how, version = process.versions.node) {
  const { platform, arch } = process
  print(`Node ${version}, ${platform} ${arch}, ${availableParallelism()} processors, without NODE_EXTRA_CA_CERTS`)
  print(how)
  const [median, slow] = fsyncTimes(join(folder, 'fsync'))
  print(`${folder} is on ${fileSystemOf(folder)}; fsync after 4 KiB appended: median ${median.toFixed(2)} ms, p99 ${slow.toFixed(2)} ms\n`)
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
