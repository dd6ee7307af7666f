import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { AtomicFile } from '../../../src/platform/atomic-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

/** Notes the calls that bring a file to the disk, and makes them. */
function noteDiskCalls(): string[] {
  const calls: string[] = []
  const { fsyncSync, renameSync, linkSync } = fs
  vi.spyOn(fs, 'fsyncSync').mockImplementation((fd) => {
    calls.push(fs.fstatSync(fd).isDirectory() ? 'sync the directory' : 'sync the file')
    fsyncSync(fd)
  })
  vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    calls.push('rename')
    renameSync(from, to)
  })
  vi.spyOn(fs, 'linkSync').mockImplementation((from, to) => {
    calls.push('link')
    linkSync(from, to)
  })
  syncBuiltinESMExports()
  onTestFinished(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })
  return calls
}

test.each([
  ['replaces another', 'commit', 'rename'],
  ['is new', 'commitNew', 'link'],
] as const)(
  'a file that %s is on the disk before it has its name, and its name before this is reported',
  (_, commit, naming) => {
    const target = join(createTemporaryFolder(), 'plants.csv')
    const file = new AtomicFile(target)
    fs.writeFileSync(file.fd, 'id,name,tag\n')
    const calls = noteDiskCalls()
    file[commit]()
    expect(calls).toEqual(['sync the file', naming, 'sync the directory'])
    file.discard()
    expect(fs.readFileSync(target, 'utf8')).toBe('id,name,tag\n')
  },
)
