import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { plants } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

// Longer than the terminal, but below 4096 bytes: where a program has ended, no more than one read of a terminal is sure to come,
// since libuv takes the hang-up for the end of what there is to read.
const longPage = ['help', 'exit-codes']
const itsEnd = 'See also: plants help formats'

const PAGER = 'sed "s/^/paged: /"'
const isPaged = 'paged: '

test.each([
  ['a page longer than the terminal', longPage, {}, true],
  ['a page that fits', ['help', 'get'], {}, false],
  ['the first page', [], {}, false],
  ['a page with --no-input', ['import', '--help', '--no-input'], {}, false],
  ['a page in CI', ['import', '--help'], { CI: 'true' }, false],
])('%s goes through PAGER or not', async (_, args, env, expected) => {
  const { code, screen } = await terminal(args, temporaryFolder(), { PAGER, ...env }).ended
  expect({ code, isPaged: screen.includes(isPaged) }).toEqual({ code: 0, isPaged: expected })
})

test('a pager gets the environment without the secrets', async () => {
  const secrets = {
    PLANTS_TOKEN: 's3cret-1',
    PLANTS_SERVE_TOKEN: 's3cret-2',
    PGPASSWORD: 's3cret-3',
    PLANTS_STORE: 'postgres://u:s3cret-4@h/d',
  }
  const { screen } = await terminal(longPage, temporaryFolder(), { PAGER: 'env', PLANTS_TIMEOUT: '7s', ...secrets }).ended
  expect({
    getsOthers: screen.includes('PLANTS_TIMEOUT=7s'),
    secrets: screen.match(/PLANTS_TOKEN|PLANTS_SERVE_TOKEN|PGPASSWORD|s3cret-./g),
  }).toEqual({
    getsOthers: true,
    secrets: null,
  })
})

test('a page in a pipe goes through no pager', async () => {
  const { code, out } = await plants(['help', 'environment'], temporaryFolder(), { env: { PAGER } })
  expect({ code, isPaged: out.includes(isPaged) }).toEqual({ code: 0, isPaged: false })
})

test('a page is shown whole where the pager cannot be started, or ends early', async () => {
  const broken = await terminal(longPage, temporaryFolder(), { PAGER: 'no-such-pager' }).ended
  expect(broken).toEqual({ code: 0, screen: expect.stringContaining(itsEnd) })
  expect(await terminal(longPage, temporaryFolder(), { PAGER: 'exit 3' }).ended).toEqual({ code: 0, screen: '' })
  const folder = temporaryFolder()
  symlinkSync(process.execPath, join(folder, 'node'))
  const withoutLess = await terminal(longPage, folder, { PATH: folder }).ended
  expect(withoutLess).toEqual({ code: 0, screen: expect.stringContaining(itsEnd) })
})

test.skipIf(!isHere('less'))('without PAGER less shows it, in bold, and Ctrl-C is for less (needs less)', async () => {
  const session = terminal(['help', 'environment'], temporaryFolder())
  await session.see('\u001b[1mSettings:\u001b[')
  const prompt = '\n:\u001b[K'
  // At the end, less has read all: a Ctrl-C would else end its reading of the page. What is typed while less handles it is lost.
  await session.answer([prompt, 'G'], ['(END)', '\u0003'])
  const typing = setInterval(() => session.type('q'), 50)
  const { code, screen } = await session.ended.finally(() => clearInterval(typing))
  expect(code).toBe(0)
  expect(stripVTControlCharacters(screen)).not.toContain('plants: ')
})
