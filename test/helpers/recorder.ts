import { connect } from 'node:net'
import { type Answer, Hostile, json } from './hostile.js'
import { World } from './world.js'

export const token = 's3cret-of-one-address'
export const fern = 'create --id 1 --name Fern --timeout 3s --output json --store'
export const accepts = json(400, { error: 422, message: 'No NewPlant' })
export const created = json(200, { name: 'Fern' })

/** A user who sends tokens; both functions return the exit code. */
export class Sender extends World {
  async login(store: string): Promise<number> {
    return (await this.run(`auth login --from-stdin --store ${store}`, { stdin: token })).code
  }

  async createAt(store: string, env: Record<string, string> = {}): Promise<number> {
    return (await this.run(`${fern} ${store}`, { env })).code
  }
}

/** A service that keeps every byte that it is sent. */
export function recorder(...posts: Answer[]): Promise<Hostile> {
  return Hostile.listen({ posts: posts.length === 0 ? [created] : posts })
}

/** A proxy whose tunnels all lead to one server, whatever was asked for. */
export function tunnelTo(service: Hostile): Promise<Hostile> {
  return Hostile.listen({
    openapi: (socket) => {
      const onward = connect(service.port, '127.0.0.1', () =>
        socket.write('HTTP/1.1 200 Connected\r\n\r\n'),
      )
      onward.on('error', () => socket.destroy()).pipe(socket)
      socket.removeAllListeners('close').pipe(onward)
    },
  })
}

/** The tokens that each server was sent. */
export function tokensIn(...servers: Hostile[]): string[][] {
  return servers.map(({ bytes }) => bytes.toString('latin1').match(/s3cret[\w-]*/g) ?? [])
}

/** The token, as it is saved for addresses. */
export function saved(...addresses: string[]): Record<string, { token: string; savedAt: string }> {
  return Object.fromEntries(
    addresses.map((address) => [address, { token, savedAt: '2026-01-02T03:04:05.678Z' }]),
  )
}
