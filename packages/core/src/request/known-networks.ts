/** The networks from which a content delivery network connects to its customers' servers. */
interface PublishedNetworks {
  /** The date of the list, with year, month and day. */
  readonly date: string
  /** Where the list is published. */
  readonly source: string
  /** The networks, with blanks and line breaks between them. */
  readonly networks: string
}

/**
 * Published networks, by their name in `trustedProxies`. docs/production/proxies.md states the dates. A network that
 * is not listed yet is not trusted, so all clients behind one of its proxies count as one client.
 */
export const KNOWN_NETWORKS: Readonly<Record<string, PublishedNetworks>> = {
  cloudflare: {
    date: "2025-07-25",
    source: "https://www.cloudflare.com/ips-v4 and https://www.cloudflare.com/ips-v6",
    networks: `
      173.245.48.0/20 103.21.244.0/22 103.22.200.0/22 103.31.4.0/22 141.101.64.0/18 108.162.192.0/18
      190.93.240.0/20 188.114.96.0/20 197.234.240.0/22 198.41.128.0/17 162.158.0.0/15 104.16.0.0/13
      104.24.0.0/14 172.64.0.0/13 131.0.72.0/22 2400:cb00::/32 2606:4700::/32 2803:f800::/32
      2405:b500::/32 2405:8100::/32 2a06:98c0::/29 2c0f:f248::/32`,
  },
  // These are the networks of the service CLOUDFRONT_ORIGIN_FACING. Clients connect to the networks of the service
  // CLOUDFRONT, which are not included.
  cloudfront: {
    date: "2026-08-22",
    source: "https://ip-ranges.amazonaws.com/ip-ranges.json",
    networks: `
      3.29.57.0/26 3.172.0.0/18 3.172.64.0/18 13.124.199.0/24 15.158.0.0/16 18.68.0.0/16 24.110.128.0/17
      52.46.0.0/18 52.82.128.0/23 52.82.134.0/23 54.182.128.0/20 54.182.144.0/21 54.182.154.0/23
      54.182.156.0/22 54.182.160.0/21 54.182.172.0/22 54.182.176.0/21 54.182.184.0/22 54.182.188.0/23
      54.182.224.0/21 54.182.240.0/21 54.182.248.0/22 54.239.134.0/23 54.239.170.0/23 54.239.204.0/22
      54.239.208.0/21 64.252.64.0/18 64.252.128.0/18 70.132.0.0/18 130.176.0.0/18 130.176.64.0/21
      130.176.72.0/22 130.176.76.0/24 130.176.78.0/23 130.176.80.0/22 130.176.86.0/23 130.176.88.0/21
      130.176.96.0/19 130.176.128.0/21 130.176.136.0/23 130.176.140.0/22 130.176.144.0/20 130.176.160.0/19
      130.176.192.0/19 204.246.166.0/24 205.251.218.0/24 2600:9000:1000::/36 2600:9000:5200::/40
      2600:9000:6000::/36`,
  },
  fastly: {
    date: "2025-07-25",
    source: "https://api.fastly.com/public-ip-list",
    networks: `
      23.235.32.0/20 43.249.72.0/22 103.244.50.0/24 103.245.222.0/23 103.245.224.0/24 104.156.80.0/20
      140.248.64.0/18 140.248.128.0/17 146.75.0.0/17 151.101.0.0/16 157.52.64.0/18 167.82.0.0/17
      167.82.128.0/20 167.82.160.0/20 167.82.224.0/20 172.111.64.0/18 185.31.16.0/22 199.27.72.0/21
      199.232.0.0/16 2a04:4e40::/32 2a04:4e42::/32`,
  },
}
