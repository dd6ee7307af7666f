import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { accepting, Disk } from '../../helpers/doctor.js'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { plants } from '../../helpers/process.js'
import { ownService, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('a store behind HTTP', () => {
  const isHere = { savedAt: '2026-01-02T03:04:05.678Z', token }

  test('that does not run fails', async () => {
    const disk = await Disk.build({
      stores: { team: { address: 'http://127.0.0.1:9' } },
      tokens: { 'http://127.0.0.1:9': isHere },
    })
    const finding = {
      check: 'store team',
      state: 'failed',
      message: 'Could not reach http://127.0.0.1:9: the connection was refused',
      hint: 'Is it running? Try: plants serve --port 9',
    }
    expect((await disk.examine()).ill).toEqual([finding])
    expect((await disk.examine(['--store', 'team'])).ill).toEqual([finding])
  })

  test('that does not answer fails when the time is over', async () => {
    const remote = await Hostile.listen({ posts: [() => undefined] })
    const disk = await Disk.build({
      stores: { team: { address: remote.url, timeout: '1s' } },
      tokens: { [remote.url]: isHere },
    })
    expect((await disk.examine()).ill).toMatchObject([
      {
        check: 'store team',
        state: 'failed',
        message: expect.stringMatching(/^(?!.*received the plant).*the request timed out/),
      },
    ])
    expect(remote.posts.map(({ body }) => body)).toEqual(['{}', '{}'])
  })

  test.each([
    ['404', http(404), /404/],
    ['200', json(200, { name: 'Fern' }), /200 to an empty object/],
    ['a redirect', http(302, '', { Location: 'https://example.com' }), /302/],
    ['an unavailable service', json(503, { error: 503, message: 'Busy' }), /Busy/],
  ])('that answers %s fails', async (_, answer, message) => {
    const remote = await Hostile.listen({ posts: [answer] })
    const disk = await Disk.build({ stores: { team: { address: remote.url } }, tokens: { [remote.url]: isHere } })
    expect((await disk.examine()).ill).toMatchObject([
      { check: 'store team', state: 'failed', message: expect.stringMatching(message), hint: expect.any(String) },
    ])
  })

  test('that refuses the token fails, and says where that came from, but not what it is', async () => {
    const address = await accepting()
    const disk = await Disk.build({
      stores: { team: { address } },
      tokens: { [address]: { ...isHere, token: 'wr0ng-token' } },
    })
    const { ill } = await disk.examine(['--store', 'team'])
    expect(ill).toEqual([
      {
        check: 'store team',
        state: 'failed',
        message: `${address} does not accept the token: This token is not accepted`,
        hint: 'The token was saved. Save another with: plants auth login --store team',
      },
    ])
    expect(JSON.stringify(ill)).not.toContain('wr0ng')
  })

  test('without a token fails when it is the store of this run, and is warned of when it is not', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const disk = await Disk.build({ stores: { team: { address: remote.url } } })
    const finding = {
      check: 'store team',
      message: `There is no token for ${remote.url}`,
      hint: 'Set PLANTS_TOKEN, or save one with: plants auth login --store team',
    }
    expect((await disk.examine()).ill).toEqual([{ ...finding, state: 'warning' }])
    expect((await disk.examine(['--store', 'team'])).ill).toEqual([{ ...finding, state: 'failed' }])
    expect(remote.connections).toBe(0)
  })

  test('whose token command has printed an expired one fails, and shows nothing of it', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const script = join(temporaryFolder(), 'token.sh')
    writeFileSync(script, `echo '{"token":"${token}","expires":"2020-01-01T00:00:00Z"}'`)
    const disk = await Disk.build({ stores: { team: { address: remote.url, 'token-command': `/bin/sh ${script}` } } })
    const { ill } = await disk.examine(['--store', 'team'])
    expect(ill).toEqual([
      {
        check: 'store team',
        state: 'failed',
        message: 'The token command of team (/bin/sh) printed a token that expired on 2020-01-01T00:00:00.000Z',
        hint: 'Renew the token where the command reads it',
      },
    ])
    expect(remote.connections).toBe(0)
  })

  test.runIf(hasOpenssl)(
    'with a certificate that nobody has signed fails, until it is trusted (needs openssl)',
    async () => {
      const tls = certificate({ names: ['IP:127.0.0.1'] })
      const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })], tls })
      const disk = await Disk.build({ stores: { team: { address: remote.url } }, tokens: { [remote.url]: isHere } })
      expect((await disk.examine()).ill).toEqual([
        {
          check: 'store team',
          state: 'failed',
          message: `Could not reach ${remote.url}: TLS failed: its certificate is not trusted (unknown issuer)`,
          hint: 'If you trust the issuer, give its certificate with --ca-cert FILE',
        },
      ])
      disk.save({ stores: { team: { address: remote.url, 'ca-cert': tls.path } }, tokens: { [remote.url]: isHere } })
      expect((await disk.examine()).ill).toEqual([])
      const other = certificate({ names: ['IP:127.0.0.1'] })
      disk.save({ stores: { team: { address: remote.url, 'ca-cert': other.path } }, tokens: { [remote.url]: isHere } })
      expect((await disk.examine()).ill).toMatchObject([
        {
          check: 'store team',
          state: 'failed',
          message: expect.stringContaining('TLS failed'),
          hint: 'Use the one that signed it',
        },
      ])
    },
  )

  test('without TLS on another machine gets no token, and the finding says why', async () => {
    const address = 'http://plants.example.com'
    const disk = await Disk.build({ stores: { team: { address } }, tokens: { [address]: isHere } })
    expect((await disk.examine()).ill).toEqual([
      {
        check: 'store team',
        state: 'warning',
        message: `The token is not sent to ${address}: without TLS others could read it`,
        hint: expect.stringContaining('stores.team.allow-http true'),
      },
    ])
  })

  test('gets PLANTS_TOKEN only when it is the store of this run', async () => {
    const answer = json(400, { error: 422, message: 'No' })
    const [own, saved, none] = await Promise.all([1, 2, 3].map(() => Hostile.listen({ posts: [answer] })))
    const disk = await Disk.build({
      store: 'own',
      stores: { own: { address: own?.url }, saved: { address: saved?.url }, none: { address: none?.url } },
      tokens: {
        [saved?.url ?? '']: { ...isHere, token: 'saved-t0ken' },
        [own?.url ?? '']: { ...isHere, token: 'own-t0ken' },
      },
    })
    disk.env['PLANTS_TOKEN'] = 'of-variable'
    const sent = (remote?: Hostile) => remote?.posts.map(({ headers }) => headers['authorization'])
    expect((await disk.examine()).ill).toMatchObject([{ check: 'store none', state: 'warning' }])
    expect([own, saved, none].map(sent)).toEqual([
      ['Bearer of-variable', 'Bearer of-variable'],
      ['Bearer saved-t0ken', 'Bearer saved-t0ken'],
      [],
    ])
    expect((await disk.examine(['--store', 'none'])).ill).toEqual([])
    expect([own, saved, none].map((remote) => sent(remote)?.at(-1))).toEqual([
      'Bearer own-t0ken',
      'Bearer saved-t0ken',
      'Bearer of-variable',
    ])
  })

  test('asks with an empty object, which makes no plant', async () => {
    const path = join(temporaryFolder(), 'plants.db')
    const address = await ownService({ host: '127.0.0.1', port: 0 }, path)
    const disk = await Disk.build()
    disk.env['PLANTS_TOKEN'] = token
    expect((await disk.examine(['--store', address])).ill).toEqual([])
    expect((await plants(['list', '--store', path], temporaryFolder())).out).toBe('')
  })
})
