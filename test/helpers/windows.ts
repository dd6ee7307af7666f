/**
 * What Windows has not, a test says that it needs, at the end of its name: "needs sh", "needs modes", "needs links" (wine and
 * most users of Windows may not make them), "needs Unix sockets", "needs paths with /", "needs to remove what is open".
 */
export const isWindows = process.platform === 'win32'
