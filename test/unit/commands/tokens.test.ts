import { expect, test } from 'vitest'
import { World } from '../../helpers/world.js'

// What these commands print is in transcripts/tokens.txt.

test('tokens create prints a new token each time, and nothing else', async () => {
  const user = new World()
  const [first, second] = [await user.run('tokens create'), await user.run('tokens create --note laptop --expires 90d')]
  for (const { code, out } of [first, second])
    expect([code, out]).toEqual([0, expect.stringMatching(/^plants_[\w-]{43}\n$/)])
  expect(first.out).not.toBe(second.out)
})

test('tokens create prints all about the token as JSON', async () => {
  const { out } = await new World().run('tokens create --note laptop --expires 12h --output json')
  const { createdAt, expiresAt, ...token } = JSON.parse(out)
  expect(token).toEqual({ id: 1, note: 'laptop', rights: ['create', 'read'], token: expect.stringMatching(/^plants_/) })
  expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(12 * 3_600_000)
})

test('tokens create says on a terminal that the token is shown once, and until when it is valid', async () => {
  const { err } = await new World().run('tokens create --expires 2m', { terminals: ['stdout', 'stderr'] })
  expect(err).toMatch(/This is token 1, valid until [\d-]{10}T[\d:]{5}Z. It is not shown again/)
})

test('tokens list shows at most 1000 columns of a note, but all of it to a program', async () => {
  const user = new World()
  await user.run(`tokens create --note ${'x'.repeat(100_000)}`)
  await user.run('tokens create')
  const { out } = await user.run('tokens list --output text')
  expect(out.split('\n').map((line) => line.length)).toEqual([1051, 1056, 1056, 0])
  expect((await user.run('tokens list')).out).toContain('x'.repeat(100_000))
})

test('tokens list is a table that fits a terminal of 80 columns', async () => {
  const user = new World()
  await user.run('tokens create --note continuous-integration --expires 90d')
  await user.run('tokens create --allow create,read,update,delete')
  await user.run('tokens create --note laptop --expires 1ms')
  await user.run('tokens create --note ci --allow delete,read,delete')
  await user.run('tokens revoke 4')
  const { out } = await user.run('tokens list --no-color', { terminals: ['stdout'] })
  expect(out.replaceAll(/\d{4}-\d\d-\d\d/g, 'YYYY-MM-DD')).toBe(`\
ID  NOTE             CREATED     EXPIRES     LAST USED  STATE    RIGHTS
 1  continuous-int…  YYYY-MM-DD  YYYY-MM-DD             valid    create,read
 2                   YYYY-MM-DD                         valid    create,read,up…
 3  laptop           YYYY-MM-DD  YYYY-MM-DD             expired  create,read
 4  ci               YYYY-MM-DD                         revoked  read,delete
`)
})
