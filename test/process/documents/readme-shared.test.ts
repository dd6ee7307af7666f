import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runBlock, shell } from '../../helpers/blocks.js'
import { blocksOf, pages } from '../../helpers/documents.js'
import { ownServer } from '../../helpers/postgres.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const [alone = '', many = ''] = (pages.get('docs/databases.md') ?? '').split('## Run many nodes\n')
const hasHaproxy = existsSync('/usr/sbin/haproxy')
const password = 's3cret-of-the-page'

test(`from one file to a shared database, to a role with least rights${hasHaproxy ? ', and to many nodes' : ''}`, async () => {
  const folder = temporaryFolder()
  onTestFinished(async () => void (await shell('kill -9 $(cat *.pid) 2> /dev/null || true', folder)))
  await runAll(hasHaproxy ? alone + many : alone, folder)
})

/** Runs the blocks of a part of docs/databases.md, with the server, the passwords and the ports of this test. */
async function runAll(part: string, folder: string): Promise<void> {
  const server = await ownServer({ asksPassword: true })
  const ports = new Map(await Promise.all(['4010', '4011', '4012', '9011', '9012'].map(async (port) => [port, await freePort()] as const)))
  const real = (text: string) =>
    text
      .replaceAll('postgres://plants@db.example.com/plants', `postgres://owner@127.0.0.1:${server.port}/garden`)
      .replaceAll('ROLE plants', 'ROLE owner')
      .replaceAll('DATABASE plants OWNER plants', 'DATABASE garden OWNER owner')
      .replaceAll('long and random', password)
      .replaceAll(/\b(40|90)1\d\b/g, (port) => ports.get(port) ?? port)
  writeFileSync(join(folder, 'password.txt'), `${password}\n`)
  await shell('plants create --id 1 --name Fern', folder)
  for (const { language, text } of blocksOf(part)) {
    if (language === 'sql') for (const statement of real(text).split(';\n').filter(Boolean)) await server.admin(statement)
    else if (language === 'haproxy') writeFileSync(join(folder, 'haproxy.cfg'), real(text))
    else expect(await runBlock({ language, text: real(text) }, folder)).toBeUndefined()
  }
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return String(typeof address === 'object' ? address?.port : address)
}
