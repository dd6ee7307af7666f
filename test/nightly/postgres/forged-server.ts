import { connect, type Socket } from 'node:net'
import { type Database, openPostgresStore } from '../../helpers/postgres/database.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

// A server in front of PostgreSQL, which passes its messages on, or sends others in place of rows.

export type Cells = (string | null)[]

/** Builds a message: see https://www.postgresql.org/docs/current/protocol-message-formats.html. */
export function buildMessage(letter: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(letter), length, body])
}

export function buildDataRow(cells: Cells): Buffer {
  const count = Buffer.alloc(2)
  count.writeUInt16BE(cells.length)
  const parts = cells.map((cell) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(cell === null ? -1 : Buffer.byteLength(cell))
    return Buffer.concat([length, Buffer.from(cell ?? '')])
  })
  return buildMessage('D', Buffer.concat([count, ...parts]))
}

export function buildCopyRow(cells: Cells): Buffer {
  return buildMessage('d', Buffer.from(`${cells.map((cell) => cell ?? '\\N').join('\t')}\n`))
}

export function writeEndlessly(socket: Socket, bytes: Buffer, start = Buffer.alloc(0)): void {
  socket.write(start)
  const write = () => {
    if (socket.destroyed) return
    if (socket.write(bytes)) setImmediate(write)
    else socket.once('drain', write)
  }
  write()
}

interface Forgery {
  /** The cells that every row of the store's tables then has. */
  cells?: Cells
  /** What is sent instead of each message of COPY. */
  copied?: Buffer
  /** The SQLSTATE with which each COPY into a table ends. */
  copyError?: string
}

const copyDone = buildMessage('c', Buffer.alloc(0))
const copyFail = buildMessage('f', Buffer.from('forged\0'))

/** Opens a store whose server sends forged rows once `forge` is called. */
export async function openForged(database: Database) {
  let forgery: Forgery = {}
  const serverPort = Number(new URL(database.url).port)
  const connectToServer = (client: Socket) => {
    const server = connect(serverPort, '127.0.0.1')
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('close', () => server.destroy())
    let readsPlants = false
    let failsToCopy = false
    client.on('data', (data) => {
      readsPlants = /FROM plant_store\.(?!schema_version)/.test(data.toString())
      const endsCopy = data.subarray(-copyDone.length).equals(copyDone)
      failsToCopy = endsCopy && forgery.copyError !== undefined
      server.write(failsToCopy ? data.subarray(0, -copyDone.length) : data)
      if (failsToCopy) server.write(copyFail)
    })
    let remainder = Buffer.alloc(0)
    server.on('data', (data) => {
      remainder = Buffer.concat([remainder, data])
      while (remainder.length >= 5 && remainder.length > remainder.readUInt32BE(1)) {
        const end = remainder.readUInt32BE(1) + 1
        const message = remainder.subarray(0, end)
        remainder = remainder.subarray(end)
        const forged = readsPlants || failsToCopy ? forgeMessage(message, forgery) : undefined
        client.write(forged ?? message)
      }
    })
  }
  const { port } = await ScriptedServer.listen({ onConnect: connectToServer })
  const url = Object.assign(new URL(database.url), { port }).href
  const store = await openPostgresStore({ ...database, url }, { parameters: 'sslmode=disable' })
  return {
    url: `${url}?sslmode=disable`,
    store,
    forge: (next: Forgery) => {
      forgery = next
    },
  }
}

/** Returns what is sent instead of a row, a part of COPY or an error, or undefined for all else. */
function forgeMessage(message: Buffer, { cells, copied, copyError }: Forgery): Buffer | undefined {
  const letter = String.fromCharCode(message[0] ?? 0)
  if (letter === 'd') return copied
  if (letter === 'D' && cells !== undefined) return buildDataRow(cells)
  if (letter !== 'E' || copyError === undefined) return undefined
  return buildMessage('E', Buffer.from(`SERROR\0VERROR\0C${copyError}\0Mforged\0\0`))
}
